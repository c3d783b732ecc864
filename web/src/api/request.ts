// The only module that calls `fetch`. The browser's cookie identifies the user; this code never sees a token.
import { signal } from "@preact/signals";

/** An error response, with the API's message. `status` is 0 if the server could not be reached. */
export class CallError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly hints: readonly string[] = [],
    readonly retryAfterS = 0,
    /** Address of the resource that the request conflicts with; empty if unknown. */
    readonly location = "",
  ) {
    super(message);
  }
}

/** Whether the session has expired. The page keeps its state and offers to sign in again. */
export const signedOut = signal(false);

export interface Request {
  body?: unknown;
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

/** Sends a request and returns the response. Throws CallError unless the call succeeded. */
export async function send(method: string, path: string, request: Request = {}): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(path, {
      method,
      redirect: "manual",
      headers: { accept: "application/json", ...request.headers },
      body: request.body === undefined ? undefined : JSON.stringify(request.body),
      signal: request.signal,
    });
  } catch (error) {
    if (request.signal?.aborted) throw error;
    throw new CallError(0, "Offline", "");
  }
  if (response.ok) return response;
  throw await refusal(response);
}

export async function read<T>(path: string, request?: Request): Promise<T> {
  return (await send("GET", path, request)).json() as Promise<T>;
}

export async function change<T>(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<T> {
  const response = await send(method, path, { body, headers });
  return (response.status === 204 ? undefined : await response.json()) as T;
}

async function refusal(response: Response): Promise<CallError> {
  // App Service Authentication may answer with a redirect to its own sign-in.
  const status = response.type === "opaqueredirect" ? 401 : response.status;
  if (status === 401) signedOut.value = true;
  return callError(status, await response.json().catch(() => null), response.headers);
}

/** Returns the error for a response. For an unreadable file, its code is the failure code. */
function callError(status: number, answer: unknown, headers: { get(name: string): string | null }): CallError {
  const problem = (answer ?? {}) as { title?: string; detail?: string; hints?: string[]; failure?: string };
  return new CallError(status, problem.failure ?? problem.title ?? "Error", problem.detail ?? "", problem.hints ?? [], Number(headers.get("retry-after")) || 0, headers.get("location") ?? "");
}

/** The platform's sign-in URL, which redirects back to the current page. */
export function signInAddress(): string {
  return `/.auth/login/aad?post_login_redirect_uri=${encodeURIComponent(location.pathname + location.search)}`;
}

export function signOutAddress(): string {
  return `/.auth/logout?post_logout_redirect_uri=${encodeURIComponent(location.pathname)}`;
}

/** Uploads a file with progress events, which fetch lacks. Resolves with the JSON of the response, or null. */
export function upload(
  method: string,
  address: string,
  body: FormData | File,
  headers: Record<string, string>,
  onProgress: (share: number) => void,
  signal: AbortSignal,
): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const sending = new XMLHttpRequest();
    sending.open(method, address);
    for (const [name, value] of Object.entries(headers)) sending.setRequestHeader(name, value);
    sending.upload.onprogress = (event) => event.lengthComputable && onProgress(event.loaded / event.total);
    sending.onload = () => {
      const answer = parsed(sending.responseText);
      if (sending.status < 300) return resolve(answer);
      if (sending.status === 401) signedOut.value = true;
      reject(callError(sending.status, answer, { get: (name) => sending.getResponseHeader(name) }));
    };
    sending.onerror = () => reject(new CallError(0, "Offline", ""));
    sending.onabort = () => reject(new CallError(0, "Aborted", ""));
    signal.addEventListener("abort", () => sending.abort());
    sending.send(body);
  });
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

// The only module that fetches. The browser's cookie says who asks; no token is ever known here.
import { signal } from "@preact/signals";

/** A refusal in the API's words. `status` 0: the server was not reached. */
export class CallError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly hints: readonly string[] = [],
    readonly retryAfterS = 0,
  ) {
    super(message);
  }
}

/** The session has ended: the page stays as it is, and offers to sign in again. */
export const signedOut = signal(false);

export interface Request {
  body?: unknown;
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

/** The response of a call that succeeded. Throws CallError for all others. */
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
  return callError(status, await response.json().catch(() => null), response.headers.get("retry-after"));
}

/** The code is the error's; of a file that cannot be read, what is wrong with it. */
function callError(status: number, answer: unknown, wait: string | null): CallError {
  const problem = (answer ?? {}) as { title?: string; detail?: string; hints?: string[]; failure?: string };
  return new CallError(status, problem.failure ?? problem.title ?? "Error", problem.detail ?? "", problem.hints ?? [], Number(wait) || 0);
}

/** Where the platform signs people in; afterwards they are back where they were. */
export function signInAddress(): string {
  return `/.auth/login/aad?post_login_redirect_uri=${encodeURIComponent(location.pathname + location.search)}`;
}

export function signOutAddress(): string {
  return `/.auth/logout?post_logout_redirect_uri=${encodeURIComponent(location.pathname)}`;
}

/** Sends a file with progress, which fetch cannot tell. Resolves with the answer's JSON; null without any. */
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
      reject(callError(sending.status, answer, sending.getResponseHeader("retry-after")));
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

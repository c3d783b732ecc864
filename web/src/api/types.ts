// The API's models. build/types.ts is generated from them before type checking (scripts/web_types.py).
import type { RunView } from "../../build/types";

export type * from "../../build/types";
export type RunStatus = RunView["status"];

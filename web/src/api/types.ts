// The API's own models. build/types.ts is made from them where types are checked (scripts/web_types.py).
import type { RunView } from "../../build/types";

export type * from "../../build/types";
export type RunStatus = RunView["status"];

/** The shapes of the HTTP API by their names. */

import type { components } from "./schema.js";

/** A shape of the OpenAPI document, such as `Shape<"RunView">`. */
export type Shape<Name extends keyof components["schemas"]> = components["schemas"][Name];

export type RunEvent = Shape<"RunEventView">;
export type RunStatus = Shape<"RunStatus">;
export type WorkflowEvent = Exclude<Shape<"WorkflowStreamItem">, Shape<"WorkflowStreamEnd">>;
export type WorkflowRunStatus = Shape<"WorkflowRunStatus">;

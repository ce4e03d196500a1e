/** Client of Dragoman. */

export { Call, Dragoman, Run, Thread, type Options, type Request } from "./client.js";
export * from "./errors.js";
export type { RunEvent, RunStatus, Shape, WorkflowEvent, WorkflowRunStatus } from "./shapes.js";
export { WorkflowRun } from "./workflows.js";

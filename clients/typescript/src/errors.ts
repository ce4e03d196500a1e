/** Errors of the client. An error of the service carries its problem document (RFC 9457). */

/** Base of all errors of this package. */
export class DragomanError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** The service was not reached, or the connection broke, also after retries. */
export class ConnectionLost extends DragomanError {}

export interface Fault {
  path: string;
  message: string;
}

/**
 * The service rejected a request. `code` is for programs, `detail` is a sentence for people; `errors` names faults in the
 * input. `problem` is the whole document.
 */
export class ApiError extends DragomanError {
  readonly code: string;
  readonly detail: string;
  readonly errors: Fault[];

  constructor(
    readonly status: number,
    readonly problem: Record<string, unknown>,
  ) {
    const detail = String(problem["detail"] ?? `The service answered with status ${status}.`);
    const code = String(problem["code"] ?? "unknown");
    const errors = (problem["errors"] as Fault[] | undefined) ?? [];
    const faults = errors.map((fault) => `${fault.path} ${fault.message}`).join("; ");
    super(`${`${detail} ${faults}`.trim()} [${code}]`);
    this.code = code;
    this.detail = detail;
    this.errors = errors;
  }
}

/** 400, 413, 422: the request is not valid. */
export class Invalid extends ApiError {}
/** 401: there is no valid API key. */
export class Unauthenticated extends ApiError {}
/** 403: the API key may not do that. */
export class Forbidden extends ApiError {}
/** 404: there is no such object. */
export class NotFound extends ApiError {}
/** 409, 412: the object's state, or its version, does not allow it. */
export class Conflict extends ApiError {}
/** 429: a limit is reached. */
export class LimitReached extends ApiError {}
/** 502, 503, 504: the service is not available now. */
export class Unavailable extends ApiError {}

const STATUSES: [typeof ApiError, number[]][] = [
  [Invalid, [400, 413, 422]],
  [Unauthenticated, [401]],
  [Forbidden, [403]],
  [NotFound, [404]],
  [Conflict, [409, 412]],
  [LimitReached, [429]],
  [Unavailable, [502, 503, 504]],
];

/** The error of a response, whose body is a problem document unless something between here and the service answered. */
export async function apiError(response: Response): Promise<ApiError> {
  let problem: unknown;
  try {
    problem = await response.json();
  } catch {
    problem = undefined;
  }
  const known = typeof problem === "object" && problem !== null ? (problem as Record<string, unknown>) : {};
  const [kind] = STATUSES.find(([, statuses]) => statuses.includes(response.status)) ?? [ApiError];
  return new kind(response.status, known);
}

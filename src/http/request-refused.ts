/** A request that is refused before GraphQL sees it. */
export class RequestRefused extends Error {
  readonly status: 400 | 406 | 413 | 415;
  readonly code: string;

  constructor(status: RequestRefused['status'], code: string, message: string) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

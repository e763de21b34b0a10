import type { ReplyCode } from './error-codes.ts';

/** A request that is refused before GraphQL sees it. */
export class RequestRefused extends Error {
  readonly status: 400 | 406 | 413 | 415;
  readonly code: ReplyCode;

  constructor(status: RequestRefused['status'], code: ReplyCode, message: string) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

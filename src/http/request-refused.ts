import type { ReplyCode } from './error-codes.ts';

/** A request that is refused before it is carried out. */
export class RequestRefused extends Error {
  readonly status: 400 | 403 | 405 | 406 | 413 | 414 | 415;
  readonly code: ReplyCode;
  /** Headers that the status calls for. */
  readonly headers: Readonly<Record<string, string>> | undefined;

  constructor(
    status: RequestRefused['status'],
    code: ReplyCode,
    message: string,
    headers?: Readonly<Record<string, string>>,
  ) {
    super(message);
    this.status = status;
    this.code = code;
    this.headers = headers;
  }
}

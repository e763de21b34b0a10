import { JSON_RESPONSE, type Reply } from '../../../http/index.ts';

/**
 * The codes of RFC 6749, sections 4.1.2.1 and 5.2, of RFC 7009, section 2.2.1, of RFC 7591, section 3.2.2, of RFC 8628,
 * section 3.5, of RFC 8693, section 2.2.2, and of RFC 8707; and `has_created_keys`, which only those get who ask for
 * it.
 */
export type OAuthCode =
  | 'invalid_request'
  | 'invalid_client'
  | 'unauthorized_client'
  | 'invalid_grant'
  | 'invalid_scope'
  | 'invalid_target'
  | 'invalid_redirect_uri'
  | 'invalid_client_metadata'
  | 'unsupported_grant_type'
  | 'unsupported_response_type'
  | 'unsupported_token_type'
  | 'has_created_keys'
  | 'access_denied'
  | 'authorization_pending'
  | 'slow_down'
  | 'expired_token'
  | 'temporarily_unavailable';

/** A refusal in terms of OAuth. */
export class OAuthError extends Error {
  readonly code: OAuthCode;
  readonly status: 400 | 401 | 404 | 405 | 413 | 415 | 429 | 503;
  /** Headers that the status calls for. */
  readonly headers: Readonly<Record<string, string>> | undefined;
  /** The message for the log, which can say more. */
  readonly detail: string;

  constructor(
    code: OAuthCode,
    message: string,
    status: OAuthError['status'] = 400,
    headers?: Readonly<Record<string, string>>,
    detail = message,
  ) {
    super(message);
    this.code = code;
    this.status = status;
    this.headers = headers;
    this.detail = detail;
  }

  /** The message in the allowed characters (RFC 6749, section 5.2). */
  get description(): string {
    return this.message
      .replaceAll('"', "'")
      .replaceAll('\\', '/')
      .replaceAll(/[^\x20-\x7e]/g, '?');
  }

  /** The reply of the endpoints for applications (RFC 6749, section 5.2). */
  reply(): Reply {
    const text = JSON.stringify({ error: this.code, error_description: this.description });
    return { status: this.status, type: JSON_RESPONSE, text, headers: { Pragma: 'no-cache', ...this.headers } };
  }
}

/** The parameters of a request: each at most once, and empty ones count as left out (RFC 6749, section 3.1). */
export class Parameters {
  readonly #given: URLSearchParams;

  constructor(given: URLSearchParams) {
    this.#given = given;
  }

  /** @throws OAuthError invalid_request for one that is there twice */
  get(name: string): string | undefined {
    const values = this.#given.getAll(name);
    if (values.length > 1) throw new OAuthError('invalid_request', `The parameter ${name} is repeated.`);
    return values[0] || undefined;
  }

  /** All values of a repeatable parameter. */
  all(name: string): string[] {
    return this.#given.getAll(name);
  }

  /** @throws OAuthError invalid_request for one that is there twice, or missing */
  need(name: string): string {
    const value = this.get(name);
    if (value === undefined) throw new OAuthError('invalid_request', `The parameter ${name} is missing.`);
    return value;
  }
}

import { OAuthError } from './oauth-error.ts';

/** The parameters of a request: each at most once, and empty ones count as left out (RFC 6749, section 3.1). */
export class Parameters {
  readonly #given: URLSearchParams;

  constructor(given: URLSearchParams) {
    this.#given = given;
  }

  /** @throws OAuthError invalid_request for one that is there twice */
  get(name: string): string | undefined {
    const values = this.#given.getAll(name);
    if (values.length > 1) throw new OAuthError('invalid_request', `The parameter ${name} is there more than once.`);
    return values[0] || undefined;
  }

  /** All values of one that may be there several times. */
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

import type { CredentialPlace } from '../keys/credential-places.ts';
import { listOf } from '../keys/text.ts';

/** Why a request is refused (RFC 6750, section 3.1). */
export type Problem = 'invalid_request' | 'invalid_token' | 'insufficient_scope';

/** What a refused client is told about how to send a key. */
export class Challenge {
  readonly #places: readonly CredentialPlace[];
  readonly #realm: string;

  constructor(places: readonly CredentialPlace[], realm: string) {
    this.#places = places;
    this.#realm = realm;
  }

  /**
   * `WWW-Authenticate`; undefined where there is nothing to say. Basic is offered where other credentials
   * would help, and first: of several challenges in one header, some clients only look at the first one.
   * @param more parameters beside the problem, such as `scope="…"`
   */
  headers(problem?: Problem, more = ''): { 'WWW-Authenticate': string } | undefined {
    const offers: string[] = [];
    const mayHelp = problem === undefined || problem === 'invalid_token';
    if (mayHelp && this.#places.includes('basic')) offers.push(`Basic realm="${this.#realm}", charset="UTF-8"`);
    const error = problem ? `, error="${problem}"${more}` : '';
    if (this.#places.includes('bearer')) offers.push(`Bearer realm="${this.#realm}"${error}`);
    // Every 401 needs a challenge (RFC 9110, section 15.5.2), and there is no registered scheme for such headers.
    else if (!this.#places.includes('basic')) offers.push(`ApiKey realm="${this.#realm}"${error}`);
    return offers.length > 0 ? { 'WWW-Authenticate': offers.join(', ') } : undefined;
  }

  /** The message without a key. */
  get missing(): string {
    return `Missing API key: send it ${listOf(this.#places.map(wayOf), 'or')}.`;
  }

  /** The message for a malformed header. */
  malformed(header: string): string {
    if (header !== 'authorization')
      return `The ${header} header is malformed: send exactly one, with the API key alone.`;
    const forms = this.#places.flatMap((place) => {
      if (place === 'bearer') return '"Bearer <API key>"';
      return place === 'basic' ? '"Basic <base64 of user:API key>"' : [];
    });
    return `The Authorization header is malformed: send exactly one, as ${listOf(forms, 'or')}.`;
  }

  /** The message for several credentials. */
  several(headers: readonly string[]): string {
    return `There are credentials in several headers (${headers.join(', ')}): send the API key in one of them.`;
  }
}

function wayOf(place: CredentialPlace): string {
  if (place === 'bearer') return 'as "Authorization: Bearer <API key>"';
  return place === 'basic' ? 'as the password of Basic authentication' : `as "${place.header}: <API key>"`;
}

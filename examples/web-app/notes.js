import { allowInsecureRequests, protectedResourceRequest, WWWAuthenticateChallengeError } from 'oauth4webapi';

/** The key has expired or was deleted. */
export class KeyEndedError extends Error {}

/** The key lacks permissions. */
export class PermissionMissingError extends Error {
  /** @param {string} scope the missing permission, such as `NOTES:CREATE_ANY` */
  constructor(scope) {
    super(`The key lacks ${scope}.`);
    this.scope = scope;
  }
}

/** Sends requests to the service behind the guard, with a key. */
export class Notes {
  #url;
  #options;

  /** @param {string} guard the address of the guard */
  constructor(guard) {
    this.#url = new URL('/notes', guard);
    const isLoopback = this.#url.hostname === '127.0.0.1';
    this.#options = { [allowInsecureRequests]: isLoopback, signal: () => AbortSignal.timeout(10_000) };
  }

  /** @returns the caller's name at the service, and all notes. @throws {KeyEndedError | PermissionMissingError} */
  async list(key) {
    const response = await this.#request(key, 'GET');
    return response.json();
  }

  /** @throws {KeyEndedError | PermissionMissingError} */
  async add(key, text) {
    await this.#request(key, 'POST', new URLSearchParams({ text }));
  }

  async #request(key, method, body) {
    try {
      const response = await protectedResourceRequest(key, method, this.#url, undefined, body, this.#options);
      if (!response.ok) throw new Error(`The service answered with status ${response.status}.`);
      return response;
    } catch (error) {
      if (!(error instanceof WWWAuthenticateChallengeError)) throw error;
      // The challenge says what is wrong (RFC 6750, section 3).
      const { error: problem, scope } = error.cause[0].parameters;
      if (problem === 'insufficient_scope') throw new PermissionMissingError(scope);
      if (problem === 'invalid_token') throw new KeyEndedError('The key has ended.');
      throw error;
    }
  }
}

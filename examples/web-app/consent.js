import * as oauth from 'oauth4webapi';

/** The reason why the person has no key, in words for them. */
export class NoKeyError extends Error {}

/** Gets keys that a person approves on a page of svc-api: authorization code with PKCE (RFC 6749, 7636, 9207). */
export class Consent {
  #issuer;
  #client;
  #redirectUri;
  #options;
  #metadata;

  /** @param {{ issuer: string, clientId: string, redirectUri: string }} options as in svc-api.yaml */
  constructor({ issuer, clientId, redirectUri }) {
    this.#issuer = new URL(issuer);
    this.#client = { client_id: clientId };
    this.#redirectUri = redirectUri;
    // Plain HTTP is only for loopback addresses.
    const isLoopback = this.#issuer.hostname === '127.0.0.1';
    this.#options = { [oauth.allowInsecureRequests]: isLoopback, signal: () => AbortSignal.timeout(10_000) };
  }

  /**
   * Prepares a request for approval.
   * @param {string} scope permissions and roles, such as `NOTES:READ_ANY role:GUEST`
   * @returns the page for the person, and data for this browser's session alone until they return
   */
  async ask(scope) {
    const { authorization_endpoint: page } = await this.#server();
    const [verifier, state] = [oauth.generateRandomCodeVerifier(), oauth.generateRandomState()];
    const address = new URL(page);
    address.search = new URLSearchParams({
      response_type: 'code',
      client_id: this.#client.client_id,
      redirect_uri: this.#redirectUri,
      scope,
      key_expires_in: '12h',
      state,
      code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
    });
    return { address: address.href, asked: { verifier, state } };
  }

  /**
   * Fetches the key that a person has approved.
   * @param {URL} back the address with which they returned
   * @returns the key and its scope, which can be narrower than requested
   * @throws {NoKeyError}
   */
  async keyFrom(back, { verifier, state }) {
    const server = await this.#server();
    try {
      // Checks `state`, and that this server sent the answer (`iss`).
      const answer = oauth.validateAuthResponse(server, this.#client, back, state);
      const proof = [oauth.None(), answer, this.#redirectUri, verifier, this.#options];
      const response = await oauth.authorizationCodeGrantRequest(server, this.#client, ...proof);
      const token = await oauth.processAuthorizationCodeResponse(server, this.#client, response);
      return { key: token.access_token, scope: token.scope };
    } catch (error) {
      if (error.error === 'access_denied') throw new NoKeyError('You have refused.', { cause: error });
      const isRefusal = error instanceof oauth.OperationProcessingError || typeof error.error === 'string';
      if (!isRefusal) throw error;
      throw new NoKeyError(`There is no key: ${error.error ?? error.message}.`, { cause: error });
    }
  }

  /** Revokes a key that is no longer needed (RFC 7009), if the server offers that. */
  async end(key) {
    const server = await this.#server();
    if (!server.revocation_endpoint) return;
    const response = await oauth.revocationRequest(server, this.#client, oauth.None(), key, this.#options);
    await oauth.processRevocationResponse(response);
  }

  /** The server's metadata (RFC 8414), requested once. */
  async #server() {
    this.#metadata ??= await oauth
      .discoveryRequest(this.#issuer, { algorithm: 'oauth2', ...this.#options })
      .then((response) => oauth.processDiscoveryResponse(this.#issuer, response));
    return this.#metadata;
  }
}

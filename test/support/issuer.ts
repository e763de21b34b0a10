import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type CryptoKey, exportJWK, generateKeyPair, type JWK, SignJWT } from 'jose';

/** A token issuer on loopback, like that of a CI platform. */
export interface TestIssuer {
  readonly url: string;
  /** The requested paths. */
  readonly requests: string[];
  /** Answers requests for the keys, if set. */
  answer: ((response: ServerResponse) => void) | undefined;
  /** Headers of the response with the keys. */
  headers: Record<string, string>;
  /** The published keys. */
  keys: JWK[];
  /** Signs with a new key from now on. @param isShown whether the old keys stay published */
  rotate(algorithm?: string): Promise<void>;
  sign(claims: Record<string, unknown>, header?: Record<string, unknown>): Promise<string>;
  stop(): Promise<void>;
}

export async function startIssuer(): Promise<TestIssuer> {
  const server = createServer((request, response) => {
    issuer.requests.push(request.url!);
    if (issuer.answer) return issuer.answer(response);
    const document =
      request.url === '/keys' ? { keys: issuer.keys } : { issuer: issuer.url, jwks_uri: `${issuer.url}/keys` };
    return response
      .writeHead(200, { 'content-type': 'application/json', ...issuer.headers })
      .end(JSON.stringify(document));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  let signer: { key: CryptoKey; alg: string; kid: string };
  let count = 0;
  const issuer: TestIssuer = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests: [],
    answer: undefined,
    headers: {},
    keys: [],
    rotate: async (alg = 'ES256') => {
      const { publicKey, privateKey } = await generateKeyPair(alg, { extractable: true });
      count += 1;
      const kid = `key ${count}`;
      signer = { key: privateKey, alg, kid };
      issuer.keys = [{ ...(await exportJWK(publicKey)), kid, alg, use: 'sig' }];
    },
    sign: (claims, header = {}) =>
      new SignJWT({ iss: issuer.url, ...claims })
        .setProtectedHeader({ alg: signer.alg, kid: signer.kid, typ: 'JWT', ...header })
        .sign(signer.key),
    stop: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
  await issuer.rotate();
  return issuer;
}

import { createHash, createPrivateKey, generateKeyPairSync, randomUUID, sign } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type AdapterFactory, type AdapterPayload, type Configuration, type JWK, Provider } from 'oidc-provider';

/** An account at a provider. */
interface Account {
  readonly sub: string;
  readonly preferred_username?: string;
  readonly email?: string;
  readonly groups?: readonly string[];
}

/** Changes to an ID token in transit. */
export interface Tampering {
  readonly header?: object;
  readonly claims?: object;
  /** The signing key; `nobody` for an unsigned token. */
  readonly by?: 'provider' | 'stranger' | 'nobody';
}

/** A real OpenID Connect provider on loopback. */
export interface TestProvider {
  readonly issuer: string;
  /** The account that signs in automatically; undefined to show a form for its name. */
  account: Account | undefined;
  /** Accounts that can sign in with their `sub`. */
  readonly accounts: Map<string, Account>;
  /** Changes to the next ID tokens. */
  tampering: Tampering | undefined;
  /** True to stop answering requests, and leave them open. */
  isSilent: boolean;
  /** The received requests, by method and path. */
  readonly requests: string[];
  /** Registers redirect URIs of the client. */
  register(...redirectUris: string[]): void;
  /** Signs with a new key from now on. */
  rotateKeys(): void;
  stop(): Promise<void>;
}

export const CLIENT = { id: 'keys', secret: 'a secret of the client that is long enough' } as const;

/**
 * @param isInToken whether ID tokens contain groups and names, which otherwise are only in the user info
 * @param host 127.0.0.2 for a provider that browsers treat as cross-site
 */
export async function startProvider({
  isInToken = true,
  host = '127.0.0.1',
}: { isInToken?: boolean; host?: string } = {}): Promise<TestProvider> {
  const server = createServer((request, response) => void answer(request, response));
  server.listen(0, host);
  await once(server, 'listening');
  const issuer = `http://${host}:${(server.address() as AddressInfo).port}`;
  let key = newKey();
  let redirects: string[] = [];
  let provider = providerWith(key);
  const test: TestProvider = {
    issuer,
    account: undefined,
    accounts: new Map(),
    tampering: undefined,
    isSilent: false,
    requests: [],
    register: (...redirectUris) => {
      redirects = redirectUris;
      provider = providerWith(key);
    },
    rotateKeys: () => {
      key = newKey();
      provider = providerWith(key);
    },
    stop: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
  return test;

  function providerWith(jwk: JWK): Provider {
    const configuration: Configuration = {
      adapter: newAdapter(),
      jwks: { keys: [jwk] },
      clients: [{ client_id: CLIENT.id, client_secret: CLIENT.secret, redirect_uris: redirects }],
      cookies: { keys: ['a key of its cookies'] },
      scopes: ['openid', 'profile', 'email', 'groups'],
      claims: { openid: ['sub'], profile: ['preferred_username'], email: ['email'], groups: ['groups'] },
      conformIdTokenClaims: !isInToken,
      features: { devInteractions: { enabled: false } },
      pkce: { required: () => true },
      findAccount: (_, sub) => ({ accountId: sub, claims: async () => ({ ...test.accounts.get(sub), sub }) }),
      interactions: { url: (_, { uid }) => `/interaction/${uid}` },
      loadExistingGrant: async (context) => {
        const { client, session } = context.oidc;
        const grant = new context.oidc.provider.Grant({ clientId: client!.clientId, accountId: session!.accountId! });
        grant.addOIDCScope('openid profile email groups');
        grant.addOIDCClaims(['groups', 'preferred_username', 'email']);
        await grant.save();
        return grant;
      },
      ttl: { Session: 600, Grant: 600, Interaction: 600, AccessToken: 600, IdToken: 600 },
    };
    const made = new Provider(issuer, configuration);
    // Do not trust X-Forwarded-* headers.
    made.proxy = false;
    return made;
  }

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { url = '', method } = request;
    test.requests.push(`${method} ${url.split('?')[0]}`);
    if (test.isSilent) return;
    if (url.startsWith('/interaction/')) return interact(request, response);
    if (url.startsWith('/token') && test.tampering) changeAnswer(response, test.tampering);
    await provider.callback()(request, response);
  }

  async function interact(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const typed = new URL(request.url!, issuer).searchParams.get('user');
    const account = test.account ?? (typed === null ? undefined : test.accounts.get(typed));
    if (account) {
      test.accounts.set(account.sub, account);
      await provider.interactionFinished(request, response, { login: { accountId: account.sub, remember: false } });
      return;
    }
    const [path] = request.url!.split('?');
    response.setHeader('Content-Type', 'text/html; charset=utf-8');
    response.end(`<!doctype html><html lang="en"><title>Provider</title><main><h1>Provider</h1>
      <form action="${path}"><label>User <input name="user"></label><button>Log in</button></form></main></html>`);
  }

  function changeAnswer(response: ServerResponse, tampering: Tampering): void {
    const end = response.end.bind(response) as (text: string) => ServerResponse;
    response.end = ((body: string | Buffer) => {
      const data = JSON.parse(body.toString()) as { id_token?: string };
      const text = JSON.stringify({ ...data, ...(data.id_token && { id_token: changed(data.id_token, tampering) }) });
      response.setHeader('Content-Length', Buffer.byteLength(text));
      return end(text);
    }) as ServerResponse['end'];
  }

  function changed(token: string, { header, claims, by = 'provider' }: Tampering): string {
    const [head, payload] = token
      .split('.')
      .slice(0, 2)
      .map((part) => JSON.parse(Buffer.from(part, 'base64url').toString()) as object);
    const parts = [
      { ...head, ...header },
      { ...payload, ...claims },
    ].map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'));
    const signed = parts.join('.');
    if (by === 'nobody') return `${signed}.`;
    const jwk = by === 'provider' ? key : newKey();
    const signature = sign('sha256', Buffer.from(signed), createPrivateKey({ key: jwk as never, format: 'jwk' }));
    return `${signed}.${signature.toString('base64url')}`;
  }
}

function newKey(): JWK {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const kid = createHash('sha256').update(randomUUID()).digest('hex').slice(0, 8);
  return { ...privateKey.export({ format: 'jwk' }), kid, alg: 'RS256', use: 'sig' };
}

/** An in-memory store for the provider. */
function newAdapter(): AdapterFactory {
  const kept = new Map<string, AdapterPayload>();
  return (model) => {
    const keyOf = (id: string) => `${model} ${id}`;
    const find = async (matches: (payload: AdapterPayload) => boolean) => [...kept.values()].find(matches);
    return {
      upsert: async (id, payload) => void kept.set(keyOf(id), payload),
      find: async (id) => kept.get(keyOf(id)),
      findByUid: (uid) => find((payload) => payload.uid === uid && payload.kind === model),
      findByUserCode: (code) => find((payload) => payload.userCode === code),
      destroy: async (id) => void kept.delete(keyOf(id)),
      revokeByGrantId: async (grantId) => {
        for (const [key, payload] of kept) if (payload.grantId === grantId) kept.delete(key);
      },
      consume: async (id) => {
        const payload = kept.get(keyOf(id));
        if (payload) payload.consumed = Math.floor(Date.now() / 1000);
      },
    };
  };
}

import type { Configuration, IDToken, UserInfoResponse } from 'openid-client';
import type { SignInProvider } from './people.ts';
import { fetchFailure, isRecord, KeysError, proxyNote, readBounded, readSecretFile } from '../../keys/basics/index.ts';
import { canIdentify } from '../../keys/key/index.ts';
import { SignInFailed } from './failure.ts';
import type { Identified } from './proxy-headers.ts';

/** Time-out for all requests of a sign-in to a provider, in milliseconds. */
const PATIENCE_MS = 5000;
/** Time to keep a provider's metadata, in milliseconds. */
const METADATA_MS = 5 * 60_000;
/** Maximum size of a provider's answer, in bytes. */
const MAX_ANSWER_BYTES = 256 * 1024;
/** Allowed difference of its clock, in seconds. */
const CLOCK_TOLERANCE = 30;

/** Expected values in the answer of a provider. */
export interface Expected {
  readonly redirectUri: string;
  readonly state: string;
  readonly nonce: string;
  /** The verifier of PKCE (RFC 7636). */
  readonly verifier: string;
}

type Metadata = ReturnType<Configuration['serverMetadata']>;

/** A provider of OpenID Connect, at which people sign in. */
export class Provider {
  readonly #settings: SignInProvider;
  readonly #needsGroups: boolean;
  #metadata: { readonly at: number; readonly read: Promise<Metadata> } | undefined;

  /**
   * @param granted the groups that are granted something; `*` is everyone
   * @throws KeysError CONFIG_… if the secret of the client cannot be read
   */
  constructor(settings: SignInProvider, granted: readonly string[]) {
    this.#settings = settings;
    this.#needsGroups = granted.some((group) => group !== '*');
    readSecret(settings);
  }

  /** Its host, as people know it. */
  get host(): string {
    return new URL(this.#settings.issuer).host;
  }

  /** Checks whether an issuer is this provider. */
  isIssuer(issuer: string): boolean {
    return URL.canParse(issuer) && new URL(issuer).href === new URL(this.#settings.issuer).href;
  }

  /** Builds the address for signing in. @throws SignInFailed if the provider does not answer */
  async authorizationUrl({ redirectUri, state, nonce, verifier }: Expected): Promise<string> {
    return this.#asking(async (ask) => {
      const { buildAuthorizationUrl, calculatePKCECodeChallenge } = await import('./openid.ts');
      const configuration = await this.#configuration(ask);
      const url = buildAuthorizationUrl(configuration, {
        redirect_uri: redirectUri,
        scope: scopesFor(configuration.serverMetadata()),
        state,
        nonce,
        code_challenge: await calculatePKCECodeChallenge(verifier),
        code_challenge_method: 'S256',
      });
      return url.href;
    });
  }

  /**
   * Identifies a person by the provider's answer.
   * @param query of the address they were redirected to
   * @throws SignInFailed for an answer that does not verify, and if the provider does not answer
   */
  async identify(query: string, { redirectUri, state, nonce, verifier }: Expected): Promise<Identified> {
    return this.#asking(async (ask) => {
      const { authorizationCodeGrant, fetchUserInfo } = await import('./openid.ts');
      const configuration = await this.#configuration(ask);
      const checks = { expectedState: state, expectedNonce: nonce, pkceCodeVerifier: verifier, idTokenExpected: true };
      const tokens = await authorizationCodeGrant(configuration, new URL(redirectUri + query), checks);
      const claims = tokens.claims()!;
      if (!this.isIssuer(claims.iss)) throw new Error(`the issuer is ${claims.iss}`);
      const hasMore = claims[this.#settings.groups] === undefined || claims['preferred_username'] === undefined;
      const more =
        hasMore && configuration.serverMetadata().userinfo_endpoint !== undefined
          ? await fetchUserInfo(configuration, tokens.access_token, claims.sub)
          : undefined;
      return this.#identified(claims, more);
    });
  }

  #identified(claims: IDToken, more: UserInfoResponse | undefined): Identified {
    const { iss: issuer, sub: subject } = claims;
    const all = { ...more, ...claims };
    const name = [all['preferred_username'], all['email'], all['name'], subject].find(canIdentify);
    if (name === undefined || !canIdentify(subject)) throw new Error('the subject is empty, or has control characters');
    return { person: { issuer, subject, name }, groups: this.#groupsIn(all) };
  }

  /** @throws SignInFailed if the provider withholds groups: without them, the person would lose permissions */
  #groupsIn(claims: Readonly<Record<string, unknown>>): readonly string[] {
    if (!this.#needsGroups) return [];
    const { groups: claim } = this.#settings;
    const [given, elsewhere] = [claims[claim], claims['_claim_names']];
    const groups: unknown[] = Array.isArray(given) ? given : [given];
    const isCutOff = isRecord(elsewhere) && claim in elsewhere;
    if (!isCutOff && groups.every((group) => typeof group === 'string')) return groups;
    const problem = isCutOff || claims['hasgroups'] === true ? 'there are too many to send' : 'there is no list';
    const text =
      `The answer of ${this.host} does not contain your groups: in the claim "${claim}", ${problem}. You are not signed ` +
      'in, and your permissions are unchanged. Ask an administrator to let the provider send your groups.';
    throw new SignInFailed(403, text, 'groups missing');
  }

  /** Asks a provider, within its time. @throws SignInFailed */
  async #asking<Result>(work: (ask: typeof fetch) => Promise<Result>): Promise<Result> {
    const deadline = AbortSignal.timeout(PATIENCE_MS);
    const ask: typeof fetch = async (input, init) => {
      try {
        const answer = await fetch(input, { ...init, signal: deadline });
        if (answer.status >= 500) throw new Error(`status ${answer.status}`);
        return new Response(await readBounded(answer.body, MAX_ANSWER_BYTES), {
          status: answer.status,
          headers: answer.headers,
        });
      } catch (error) {
        const text = `${this.host} does not answer. Try again later.`;
        const note = proxyNote(this.#settings.issuer);
        const reason = `${fetchFailure(error)}${note && `.${note}`}`;
        throw new SignInFailed(503, text, reason, { cause: error });
      }
    };
    try {
      return await work(ask);
    } catch (error) {
      if (error instanceof KeysError) throw error;
      for (let cause: unknown = error; cause instanceof Error; cause = cause.cause)
        if (cause instanceof SignInFailed) throw cause;
      const { code, message } = error as Error & { code?: unknown };
      const text = `Signing in at ${this.host} was cancelled or failed. Try again.`;
      throw new SignInFailed(403, text, typeof code === 'string' ? code : message, { cause: error });
    }
  }

  /** Loads the provider's current keys for each sign-in, because it may have rotated them. */
  async #configuration(ask: typeof fetch): Promise<Configuration> {
    const client = await import('./openid.ts');
    const metadata = await this.#readMetadata(ask);
    const secret = readSecret(this.#settings);
    const methods = metadata.token_endpoint_auth_methods_supported ?? ['client_secret_basic'];
    const authentication = methods.includes('client_secret_basic')
      ? client.ClientSecretBasic(secret)
      : client.ClientSecretPost(secret);
    const tolerant = { [client.clockTolerance]: CLOCK_TOLERANCE };
    const configuration = new client.Configuration(metadata, this.#settings.clientId, tolerant, authentication);
    configuration[client.customFetch] = ask;
    if (this.#isPlain) client.allowInsecureRequests(configuration);
    // The signature of an ID token is verified, although it comes from the provider itself.
    client.enableNonRepudiationChecks(configuration);
    return configuration;
  }

  /** Reads the metadata of the provider, once for concurrent sign-ins. */
  #readMetadata(ask: typeof fetch): Promise<Metadata> {
    const now = performance.now();
    if (this.#metadata && now - this.#metadata.at < METADATA_MS) return this.#metadata.read;
    const read = this.#discover(ask);
    this.#metadata = { at: now, read };
    read.catch(() => {
      if (this.#metadata?.read === read) this.#metadata = undefined;
    });
    return read;
  }

  async #discover(ask: typeof fetch): Promise<Metadata> {
    const client = await import('./openid.ts');
    const { issuer, clientId } = this.#settings;
    const execute = this.#isPlain ? [client.allowInsecureRequests] : [];
    const options = { execute, [client.customFetch]: ask };
    return (await client.discovery(new URL(issuer), clientId, undefined, client.None(), options)).serverMetadata();
  }

  /** Only on this machine: see `invalidProvider`. */
  get #isPlain(): boolean {
    return this.#settings.issuer.startsWith('http:');
  }
}

const OPTIONAL_SCOPES = ['profile', 'email', 'groups'];

/** Scopes for a name and groups, as far as the provider supports them. */
function scopesFor({ scopes_supported: known = ['profile', 'email'] }: Metadata): string {
  return ['openid', ...OPTIONAL_SCOPES.filter((scope) => known.includes(scope))].join(' ');
}

function readSecret({ secretFile }: SignInProvider): string {
  const words = { what: "The file of the client's secret", remedy: 'Correct "client-secret" under "people".' };
  const secret = readSecretFile(secretFile, words).text.trim();
  if (secret !== '') return secret;
  throw new KeysError('CONFIG_INVALID', `${words.what}, ${secretFile}, is empty. ${words.remedy}`);
}

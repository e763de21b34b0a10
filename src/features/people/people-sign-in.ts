import type { FeatureContext } from '../../feature.ts';
import { type ClientAddresses, isLoopbackHost } from '../../http/index.ts';
import { madeOnce } from '../../keys/basics/index.ts';
import type { ApiKey } from '../../keys/key/index.ts';
import { grantsOf, People, type PeopleSettings, type SignedIn } from './people.ts';
import { AttemptCounter } from '../../limits/index.ts';
import { beginSignIn, finishSignIn, type PendingSignIn } from './at-provider.ts';
import { SignInFailed } from './failure.ts';
import { Provider } from './provider.ts';
import { type Identified, readProxyHeaders } from './proxy-headers.ts';

/** Dependencies of signing people in. */
interface PeopleSignInOptions {
  readonly settings: PeopleSettings;
  /** The rules for their keys. */
  readonly people: People;
  /** Knows which proxies are trusted. */
  readonly addresses: Pick<ClientAddresses, 'trusts'>;
  /** The address of the service; undefined where that is not configured. */
  readonly publicUrl: string | undefined;
  /** Checks whether a route names a host, as written in `Host`. */
  readonly isGuarded?: (host: string) => boolean;
  /** Milliseconds since 1970. */
  readonly clock: () => number;
}

type ProxiedRequest = Parameters<typeof readProxyHeaders>[0];

/** The number of new people that a proxy can name in a minute. */
const NEW_PEOPLE = '30/m';
/** All of them come from the proxy. */
const ANYWHERE = { source: '', network: undefined };
const OTHER_HOST =
  'Your proxy signed you in, but this service does not know the address you opened. Open the address in "publicUrl" ' +
  'of svc-api.yaml, one that a route names, or localhost.';
const NOT_PRIVATE =
  'Your proxy signed you in, but this connection is not encrypted, so others could read it. Use https. Behind a proxy ' +
  'that ends TLS, set X-Forwarded-Proto or "publicUrl".';

/** Creates the sign-in of an app; undefined if it is not configured. @throws KeysError CONFIG_… */
export const peopleOf = madeOnce(({ config, keys, addresses, publicUrl }: FeatureContext) => {
  if (!config?.people) return undefined;
  const { clock } = keys;
  return new PeopleSignIn({ settings: config.people, people: keys.feature(People), clock, addresses, publicUrl });
});

/** Signs people in who have no key, as the configuration says: at the console, for consent, and at the door. */
export class PeopleSignIn {
  /** The provider at which they sign in; undefined where a proxy signs them in. */
  readonly provider: Provider | undefined;
  readonly #options: PeopleSignInOptions;
  readonly #newPeople = AttemptCounter.of(NEW_PEOPLE)!;

  /** @throws KeysError CONFIG_… if the secret for a provider cannot be read */
  constructor(options: PeopleSignInOptions) {
    const { by } = options.settings;
    this.#options = options;
    this.provider = 'issuer' in by ? new Provider(by, Object.keys(options.settings.grant)) : undefined;
  }

  /** Checks whether the person that a key stands for stays signed in by their session. */
  goesOn({ person }: Pick<ApiKey, 'person'>): boolean {
    return person !== null && (this.provider?.isIssuer(person.issuer) ?? false);
  }

  /**
   * Reads the person from the headers of a trusted proxy, if any. A page of any site can let its own name resolve to
   * this machine and send such headers, but it cannot change its Host.
   * @param seen address that the browser opened
   * @throws SignInFailed also for a host that is not ours, and for a connection that others can read
   */
  inHeaders(request: ProxiedRequest, seen: { readonly isPrivate: boolean }): Identified | undefined {
    const { settings, addresses } = this.#options;
    if ('issuer' in settings.by) return undefined;
    const identified = readProxyHeaders(request, settings.by, addresses);
    if (!identified) return undefined;
    const [host = '', ...others] = request.all('host');
    if (others.length > 0 || !this.#isOwn(host)) throw new SignInFailed(403, OTHER_HOST, 'host');
    if (!seen.isPrivate) throw new SignInFailed(403, NOT_PRIVATE, 'not encrypted');
    return identified;
  }

  #isOwn(host: string): boolean {
    const { publicUrl, isGuarded } = this.#options;
    const own = publicUrl === undefined ? undefined : new URL(publicUrl);
    const isPublic = own !== undefined && URL.parse(`${own.protocol}//${host}`)?.host === own.host;
    return isPublic || isLoopbackHost(host) || isGuarded?.(host) === true;
  }

  /** Checks whether a trusted proxy identifies the caller. */
  isNamed(request: ProxiedRequest): boolean {
    const { settings, addresses } = this.#options;
    return 'header' in settings.by && request.all(settings.by.header).length > 0 && addresses.trusts(request.peer());
  }

  /**
   * Sends a person to the provider.
   * @param redirectUri where they return to
   * @param next address to open then
   * @throws SignInFailed
   */
  begin(redirectUri: string, next: string): Promise<PendingSignIn> {
    return beginSignIn({ provider: this.provider!, redirectUri, now: this.#options.clock() }, next);
  }

  /** Identifies the person who comes back from the provider: see `finishSignIn`. @throws SignInFailed */
  finish(
    redirectUri: string,
    query: string,
    cookieOf: (name: string) => string | undefined,
  ): ReturnType<typeof finishSignIn> {
    return finishSignIn({ provider: this.provider!, redirectUri, now: this.#options.clock() }, query, cookieOf);
  }

  /**
   * Finds or creates the key of a person, with the current grants of their groups.
   * @throws SignInFailed if they have none; KeysError STORE_…
   */
  async signIn({ person, groups }: Identified): Promise<SignedIn> {
    const { people, settings } = this.#options;
    const signedIn = await people.signIn(person, grantsOf(settings.grant, groups), {
      beforeCreate: () => {
        if (!this.provider && this.#newPeople.add(ANYWHERE) !== undefined)
          throw new SignInFailed(429, 'Too many new people have signed in. Try again in a minute.', 'limited');
      },
    });
    if (signedIn) return signedIn;
    const text = `You are signed in as ${person.name}, but you have no permissions here.`;
    throw new SignInFailed(403, `${text} Ask an administrator of this service.`, 'nothing granted');
  }
}

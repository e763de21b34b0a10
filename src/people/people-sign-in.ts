import type { ClientAddresses } from '../http/index.ts';
import { grantsOf, type People, type PeopleSettings, type SignedIn } from '../keys/authentication/index.ts';
import { beginSignIn, finishSignIn, type PendingSignIn } from './at-provider.ts';
import { SignInFailed } from './failure.ts';
import { Provider } from './provider.ts';
import { type Identified, readProxyHeaders } from './proxy-headers.ts';

/** What signing people in needs from outside. */
interface PeopleSignInOptions {
  readonly settings: PeopleSettings;
  /** The rules for their keys. */
  readonly people: People;
  /** Knows which proxies are trusted. */
  readonly addresses: Pick<ClientAddresses, 'trusts'>;
  /** Milliseconds since 1970. */
  readonly clock: () => number;
}

/** Signs people in who have no key, as the configuration says: at the console, for consent, and at the door. */
export class PeopleSignIn {
  /** At which they sign in themselves; undefined where a proxy signs them in. */
  readonly provider: Provider | undefined;
  readonly #options: PeopleSignInOptions;

  /** @throws KeysError CONFIG_… if the secret for a provider cannot be read */
  constructor(options: PeopleSignInOptions) {
    const { by } = options.settings;
    this.#options = options;
    this.provider = 'issuer' in by ? new Provider(by) : undefined;
  }

  /** Whether somebody whom an issuer has identified goes on by their session alone. */
  goesOn(issuer: string): boolean {
    return this.provider?.isIssuer(issuer) ?? false;
  }

  /** Who a trusted proxy says that makes a request; undefined if it says nobody. @throws SignInFailed */
  inHeaders(request: Parameters<typeof readProxyHeaders>[0]): Identified | undefined {
    const { settings, addresses } = this.#options;
    return 'issuer' in settings.by ? undefined : readProxyHeaders(request, settings.by, addresses);
  }

  /** Whether a trusted proxy says anything of who makes a request. */
  isNamed(request: Parameters<typeof readProxyHeaders>[0]): boolean {
    const { settings, addresses } = this.#options;
    return 'header' in settings.by && request.all(settings.by.header).length > 0 && addresses.trusts(request.peer());
  }

  /**
   * Sends somebody to the provider.
   * @param redirectUri where they are sent back to
   * @param next where they want to go then
   * @throws SignInFailed
   */
  begin(redirectUri: string, next: string): Promise<PendingSignIn> {
    return beginSignIn({ provider: this.provider!, redirectUri, now: this.#options.clock() }, next);
  }

  /** Who comes back from the provider: see `finishSignIn`. @throws SignInFailed */
  finish(
    redirectUri: string,
    query: string,
    cookieOf: (name: string) => string | undefined,
  ): ReturnType<typeof finishSignIn> {
    return finishSignIn({ provider: this.provider!, redirectUri, now: this.#options.clock() }, query, cookieOf);
  }

  /**
   * Gives somebody their key, with what their groups are granted now.
   * @throws SignInFailed if nothing is granted to them; KeysError STORE_…
   */
  async signIn({ person, groups }: Identified): Promise<SignedIn> {
    const { people, settings } = this.#options;
    const signedIn = await people.signIn(person, grantsOf(settings.grant, groups));
    if (signedIn) return signedIn;
    const text = `You are signed in as ${person.name}, and nothing is granted to you here.`;
    throw new SignInFailed(403, `${text} Ask an administrator of this service.`, 'nothing granted');
  }
}

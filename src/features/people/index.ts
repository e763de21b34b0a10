/** Who signs people in: a proxy that is trusted, or a provider of OpenID Connect. */
export { SIGN_IN_MS } from './at-provider.ts';
export { SignInFailed } from './failure.ts';
export { peopleOf, PeopleSignIn } from './people-sign-in.ts';
export type { Identified } from './proxy-headers.ts';

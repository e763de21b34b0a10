/** Who signs people in: a proxy that is trusted, or a provider of OpenID Connect. */
export { SignInFailed } from './failure.ts';
export { type Identified, readProxyHeaders } from './proxy-headers.ts';
export { beginSignIn, finishSignIn, type PendingSignIn, SIGN_IN_MS } from './sign-in.ts';
export { Provider } from './provider.ts';

import type { CredentialPlace } from '../../keys/credential-places.ts';

/** Whether a header, by its canonical name, is one in which a key may stand. */
export type IsCredential = (name: string, value: string) => boolean;

const SCHEMES = { bearer: /^bearer\b/i, basic: /^basic\b/i };

/**
 * Finds the headers in which keys may stand, so that none gets to the upstream. Of Authorization those of our schemes
 * count: another one is the upstream's own matter.
 */
export function credentialHeaders(places: readonly CredentialPlace[]): IsCredential {
  const schemes = places.flatMap((place) => (typeof place === 'string' ? SCHEMES[place] : []));
  const names = new Set(places.flatMap((place) => (typeof place === 'string' ? [] : place.header)));
  return (name, value) =>
    names.has(name) || (name === 'authorization' && schemes.some((scheme) => scheme.test(value.trimStart())));
}

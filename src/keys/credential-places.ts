/** Where a key may stand in a request. A header's name is in lower case. */
export type CredentialPlace = 'bearer' | 'basic' | { readonly header: string };

/** Where a key stands unless the operator says otherwise. */
export const BEARER_ALONE: readonly CredentialPlace[] = ['bearer'];

/** What proxies pass on: most drop names with underscores, and upstreams may take those for names with hyphens. */
const NAME = /^[a-z0-9]+(?:-[a-z0-9]+)*$/;

/** Headers that HTTP, proxies, browsers or this program give another meaning. */
const TAKEN: ReadonlySet<string> = new Set(
  (
    'accept age allow cache-control connection cookie date dnt early-data expect expires forwarded from host ' +
    'keep-alive location max-forwards origin pragma priority range referer server set-cookie te trailer ' +
    'transfer-encoding upgrade user-agent vary via warning www-authenticate x-real-ip'
  ).split(' '),
);
const TAKEN_FAMILIES = /^(?:accept|access-control|content|if|proxy|sec|x-auth|x-forwarded|x-original)-/;

/**
 * What is wrong with a header's name, as the end of a sentence; undefined if a key may stand in it.
 * @param name in any case
 */
export function problemOfHeader(name: string): string | undefined {
  const lower = name.toLowerCase();
  if (lower === 'authorization') return 'is read by "bearer" and "basic"';
  if (!NAME.test(lower)) return 'is not a name of letters, digits and single hyphens, such as X-Api-Key';
  if (TAKEN.has(lower) || TAKEN_FAMILIES.test(lower)) return 'has another meaning: choose one of your own';
  return undefined;
}

/**
 * Checks where keys may stand, and puts the names of headers into lower case.
 * @throws RangeError naming the first issue
 */
export function checkCredentialPlaces(places: readonly CredentialPlace[]): readonly CredentialPlace[] {
  const checked = places.map(checkPlace);
  const texts = checked.map(textOf);
  const twice = texts.find((text, index) => texts.indexOf(text) !== index);
  if (twice !== undefined) throw new RangeError(`"${twice}" is there twice as a place for credentials.`);
  if (checked.length === 0) throw new RangeError('There must be at least one place for credentials.');
  return checked;
}

function checkPlace(place: CredentialPlace): CredentialPlace {
  if (place === 'bearer' || place === 'basic') return place;
  const { header } = (place ?? {}) as { header?: unknown };
  if (typeof header !== 'string')
    throw new RangeError('A place for credentials is "bearer", "basic" or { header: "X-Api-Key" }.');
  const problem = problemOfHeader(header);
  if (problem) throw new RangeError(`The header "${header}" cannot hold credentials: it ${problem}.`);
  return { header: header.toLowerCase() };
}

function textOf(place: CredentialPlace): string {
  return typeof place === 'string' ? place : place.header;
}

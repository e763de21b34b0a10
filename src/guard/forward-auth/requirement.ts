import type { Catalog, Permission } from '../../keys/permissions/catalog.ts';
import { parsePermissions } from '../../keys/permissions/grants.ts';
import { memoized } from '../../http/memoized.ts';
import { isDecodable } from '../../http/request-head.ts';
import { printable } from '../../keys/text.ts';
import type { Allow } from '../../routes/router.ts';

const NAMES: ReadonlySet<string> = new Set(['permission', 'any', 'key']);
const ENCODED_ASCII = /%[0-7][\da-f]/gi;
const FORMS = 'write permission=RESOURCE:ACTION (repeated: all of them), any=RESOURCE:ACTION, or key';

/** Whether a query names a requirement, rightly or not. It is the client's, and need not be UTF-8. */
export function namesRequirement(query: string): boolean {
  return query.split('&').some((pair) => NAMES.has(pair.split('=', 1)[0]!.replaceAll(ENCODED_ASCII, asciiOf)));
}

function asciiOf(encoded: string): string {
  return String.fromCharCode(Number.parseInt(encoded.slice(1), 16));
}

/** What the configurations of proxies require of keys. They are few, and asked about with each request. */
export class Requirements {
  /**
   * Reads the query of an endpoint's URL: `permission=R:A`, repeated for all of several, `any=R:A`, repeated for any of
   * them, or `key` for any valid key.
   */
  readonly read: (query: string) => Allow | { readonly fault: string };

  constructor(catalog: Catalog) {
    this.read = memoized((query) => readRequirement(query, catalog));
  }
}

function readRequirement(query: string, catalog: Catalog): Allow | { readonly fault: string } {
  // What is not UTF-8 names nothing.
  const parameters = new URLSearchParams(isDecodable(query) ? query : [[query, '']]);
  const [name = '', ...others] = new Set(parameters.keys());
  const unknown = [name, ...others].find((other) => !NAMES.has(other));
  if (unknown !== undefined) return { fault: `"${printable(unknown)}" in the endpoint's URL is unknown: ${FORMS}` };
  if (others.length > 0) return { fault: `the endpoint's URL has ${name} and ${others.join()}: ${FORMS}` };
  if (name === 'key') return { kind: 'key' };
  const permissions = new Set<Permission>();
  for (const item of parameters.getAll(name)) {
    const { values, issues } = parsePermissions([item], catalog);
    // What is wrong with all the others is not looked for: to explain one takes time.
    if (issues[0]) return { fault: `the endpoint's URL: ${issues[0].message}` };
    permissions.add(values[0]!);
  }
  return { kind: name === 'any' ? 'any' : 'all', permissions: [...permissions] as [Permission, ...Permission[]] };
}

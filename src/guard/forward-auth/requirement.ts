import { LRUCache } from 'lru-cache';
import type { Catalog, Permission } from '../../keys/permissions/catalog.ts';
import { parsePermissions } from '../../keys/permissions/grants.ts';
import { printable } from '../../keys/text.ts';
import type { Allow } from '../../routes/route.ts';

const NAMES: ReadonlySet<string> = new Set(['permission', 'any', 'key']);
const FORMS = 'write permission=RESOURCE:ACTION (repeated: all of them), any=RESOURCE:ACTION, or key';

/** Whether a query names a requirement, rightly or not. */
export function namesRequirement(query: string): boolean {
  return [...new URLSearchParams(query).keys()].some((name) => NAMES.has(name));
}

/** What the configurations of proxies require of keys. They are few, and asked about with each request. */
export class Requirements {
  readonly #read: LRUCache<string, Allow | { readonly fault: string }>;

  constructor(catalog: Catalog) {
    this.#read = new LRUCache({ max: 100, memoMethod: (query) => readRequirement(query, catalog) });
  }

  /**
   * Reads the query of an endpoint's URL: `permission=R:A`, repeated for all of several, `any=R:A`, repeated for any of
   * them, or `key` for any valid key.
   */
  read(query: string): Allow | { readonly fault: string } {
    return this.#read.memo(query);
  }
}

function readRequirement(query: string, catalog: Catalog): Allow | { readonly fault: string } {
  const parameters = new URLSearchParams(query);
  const [name = '', ...others] = new Set(parameters.keys());
  const unknown = [name, ...others].find((other) => !NAMES.has(other));
  if (unknown !== undefined) return { fault: `"${printable(unknown)}" in the endpoint's URL is unknown: ${FORMS}` };
  if (others.length > 0) return { fault: `the endpoint's URL has ${name} and ${others.join()}: ${FORMS}` };
  if (name === 'key') return { kind: 'key' };
  const { values, issues } = parsePermissions(parameters.getAll(name), catalog);
  const [issue] = issues;
  if (issue) return { fault: `the endpoint's URL: ${issue.message}` };
  return { kind: name === 'any' ? 'any' : 'all', permissions: values as [Permission, ...Permission[]] };
}

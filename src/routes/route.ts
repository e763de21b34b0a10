import type { Permission } from '../keys/permissions/catalog.ts';

/** Who may make a request: anybody, any valid key, or a key with all or any of some permissions. */
export type Allow =
  | { readonly kind: 'open' | 'key' }
  | { readonly kind: 'all' | 'any'; readonly permissions: readonly [Permission, ...Permission[]] };

/** A declared route: what one kind of request requires. */
export interface Route {
  /** A host in its canonical form, `*.example.org` for one or more labels before it, or `*` for every host. */
  readonly host: string;
  /** Starts with a slash. Segments: text, `*` for exactly one, and `**` at the end for the rest, which may be empty. */
  readonly path: string;
  /** Undefined: all methods. */
  readonly methods?: readonly string[];
  readonly allow: Allow;
  /** Whether CORS preflights pass without a key. */
  readonly preflightOpen: boolean;
  /** Its line in the file that declares it. */
  readonly line?: number;
}

import type { ApiKey } from '../key/index.ts';

/** Kinds of what a key did to another one. */
export type IssuedKind = 'SECRET' | 'WIDENING' | 'ENABLING' | 'CREATION' | 'ADOPTION' | 'APPROVAL';

/** Something that a key did to another one, and that is in force. */
export interface Issued<Key extends ApiKey = ApiKey> {
  /** The name of the other key, or of the one that an application is to get. */
  readonly name: string;
  /** The other key; null for one that there is not yet. */
  readonly apiKey: Key | null;
  readonly what: IssuedKind;
  /** In milliseconds since 1970. */
  readonly at: number;
}

/** A key by its id and name. */
export type KeyName = Pick<ApiKey, 'id' | 'name'>;

/** Something that a key did to another one, and that is in force. Without an id, the other key does not exist yet. */
export type NamedIssue = Omit<Issued, 'apiKey'> & {
  readonly keyId: string | null;
  /** True if the other key is disabled already. */
  readonly disabled: boolean;
};

/** The same by the names of the other keys. */
export function namedIssues(issued: readonly Issued[]): NamedIssue[] {
  return issued.map(({ name, apiKey, what, at }) => {
    return { name, keyId: apiKey?.id ?? null, what, at, disabled: apiKey?.disabledAt != null };
  });
}

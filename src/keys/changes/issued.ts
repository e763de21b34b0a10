import type { ApiKey } from '../key/index.ts';

/** The ways in which a key can affect another one. */
export type IssuedKind = 'SECRET' | 'WIDENING' | 'ENABLING' | 'CREATION' | 'ADOPTION' | 'APPROVAL';

/** An effect of a key on another one that is still in force. */
export interface Issued<Key extends ApiKey = ApiKey> {
  /** The name of the other key, or the intended name of an application's key. */
  readonly name: string;
  /** The other key; null if it does not exist yet. */
  readonly apiKey: Key | null;
  readonly what: IssuedKind;
  /** In milliseconds since 1970. */
  readonly at: number;
}

/** A key by its id and name. */
export type KeyName = Pick<ApiKey, 'id' | 'name'>;

/** Like `Issued`, by name. Without an id, the other key does not exist yet. */
export type NamedIssue = Omit<Issued, 'apiKey'> & {
  readonly keyId: string | null;
  /** True if the other key is already disabled. */
  readonly disabled: boolean;
};

/** Reduces effects to the names of the other keys. */
export function namedIssues(issued: readonly Issued[]): NamedIssue[] {
  return issued.map(({ name, apiKey, what, at }) => {
    return { name, keyId: apiKey?.id ?? null, what, at, disabled: apiKey?.disabledAt != null };
  });
}

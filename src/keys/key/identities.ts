import { hash } from 'node:crypto';
import { IDENTITIES } from '../../features/identities.ts';
import type { Identity } from '../added/index.ts';
import { hasControlCharacters, isRecord } from '../basics/index.ts';

/** A field of a key without a secret: the identity that it stands for. Features set it, and callers never do. */
export interface IdentityField<Value> extends Identity<Value> {
  readonly none: Value | null;
  /** The identity in a value, without other properties; undefined if it is none. */
  readStored(value: unknown): Value | undefined;
  /**
   * The value in the column that holds the digest of a secret for other keys. It can never equal a digest, as it has a
   * character that `digestSecret` never gives.
   * @param value at least the parts that identify it
   */
  digest(value: Partial<Value>): string;
}

/** In characters; OpenID Connect allows 255 of a subject. */
const MAX_LENGTH = 255;

/** True for a text that can be a part of an identity: visible, and within the length that providers are allowed. */
export function canIdentify(text: unknown): text is string {
  return typeof text === 'string' && text.trim() !== '' && text.length <= MAX_LENGTH && !hasControlCharacters(text);
}

function fieldOf<Value>(field: string, identity: Identity<Value>): IdentityField<Value> {
  const parts = Object.keys(identity.parts) as (keyof Value & string)[];
  return {
    ...identity,
    none: null,
    readStored(value) {
      if (!isRecord(value) || !parts.every((part) => canIdentify(value[part]))) return undefined;
      return Object.fromEntries(parts.map((part) => [part, value[part]])) as Value;
    },
    digest(value) {
      const identifying = identity.identifiedBy.map((part) => value[part]);
      return `${field}:${hash('sha256', JSON.stringify(identifying), 'base64url')}`;
    },
  };
}

// oxlint-disable typescript/no-explicit-any -- identities of any type
type AnyIdentity = Identity<any>;
type AnyIdentityField = IdentityField<any>;
// oxlint-enable typescript/no-explicit-any

/** Fields with the identity that a key without a secret stands for. */
export const identityFields = Object.fromEntries(
  Object.entries<AnyIdentity>(IDENTITIES).map(([name, identity]) => [name, fieldOf(name, identity)]),
) as {
  readonly [Name in keyof typeof IDENTITIES]: (typeof IDENTITIES)[Name] extends { textOf(value: infer Value): string }
    ? IdentityField<Value>
    : never;
};

/** The identity that a key stands for, with its field and the name of that. */
interface KeyIdentity {
  readonly name: string;
  readonly field: AnyIdentityField;
  readonly value: Readonly<Record<string, string>>;
}

/** All of these fields, with their names. */
export const IDENTITY_FIELDS = Object.entries<AnyIdentityField>(identityFields);

/** The identity in the values of a key; undefined for a key with a secret. */
export function identityOf(values: object): KeyIdentity | undefined {
  for (const [name, field] of IDENTITY_FIELDS) {
    const value = (values as Readonly<Record<string, KeyIdentity['value'] | null | undefined>>)[name];
    if (value) return { name, field, value };
  }
  return undefined;
}

/** The names of the identity that a key stands for, that for display first; none for a key with a secret. */
export function identityNamesOf(values: object): string[] {
  const identity = identityOf(values);
  return identity ? identity.field.names.map((part) => identity.value[part]!) : [];
}

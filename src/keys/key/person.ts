import { hash } from 'node:crypto';
import { hasControlCharacters } from '../basics/index.ts';

/** A person who signs in through a provider or a proxy. */
export interface Person {
  /**
   * The authority for the identity: the URL of a provider (OpenID Connect Core), or `header:` and the header of a
   * proxy.
   */
  readonly issuer: string;
  /** The identifier at the issuer. Together, both identify the person. */
  readonly subject: string;
  /** The name at the issuer, for display only: it can change, and is not unique. */
  readonly name: string;
}

/** In characters; OpenID Connect allows 255 of a subject. */
const MAX_LENGTH = 255;

/** True for a text that can name a person: visible, and within the length that providers are allowed. */
export function canName(text: unknown): text is string {
  return typeof text === 'string' && text.trim() !== '' && text.length <= MAX_LENGTH && !hasControlCharacters(text);
}

/**
 * The person's value in the column that holds the digest of a secret for other keys. It can never equal a digest, as it
 * has a character that `digestSecret` never gives.
 */
export function digestPerson({ issuer, subject }: Pick<Person, 'issuer' | 'subject'>): string {
  return `person:${hash('sha256', JSON.stringify([issuer, subject]), 'base64url')}`;
}

/** A person as stored text. */
export function personText({ issuer, subject, name }: Person): string {
  return JSON.stringify({ issuer, subject, name });
}

/** The person in a stored text; undefined for any other text. */
export function readPerson(text: string): Person | undefined {
  try {
    return personIn(JSON.parse(text));
  } catch {
    return undefined;
  }
}

/** The person in a value, without other properties; undefined if it is none. */
export function personIn(value: unknown): Person | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const { issuer, subject, name } = value as Record<string, unknown>;
  return canName(issuer) && canName(subject) && canName(name) ? { issuer, subject, name } : undefined;
}

import { hash } from 'node:crypto';
import { hasControlCharacters } from '../basics/index.ts';

/** Somebody who signs in at a provider, or at a proxy. */
export interface Person {
  /** Who says who they are: the URL of a provider (OpenID Connect Core), or `header:` and the header of a proxy. */
  readonly issuer: string;
  /** Who they are there: with the issuer, it identifies them. */
  readonly subject: string;
  /** What they are called there, only to be shown: it may change, and others may have it. */
  readonly name: string;
}

/** In characters; OpenID Connect allows 255 of a subject. */
const MAX_LENGTH = 255;

/** Whether a text can name somebody: it shows something, and is no longer than a provider may make it. */
export function canName(text: unknown): text is string {
  return typeof text === 'string' && text.trim() !== '' && text.length <= MAX_LENGTH && !hasControlCharacters(text);
}

/**
 * What the store keeps of a person where it keeps the digest of a secret of other keys. No secret has it: it has a
 * character that `digestSecret` never gives.
 */
export function digestPerson({ issuer, subject }: Pick<Person, 'issuer' | 'subject'>): string {
  return `person:${hash('sha256', JSON.stringify([issuer, subject]), 'base64url')}`;
}

/** A person as the store keeps them. */
export function personText({ issuer, subject, name }: Person): string {
  return JSON.stringify({ issuer, subject, name });
}

/** The person in such a text; undefined for any other text. */
export function readPerson(text: string): Person | undefined {
  try {
    return personIn(JSON.parse(text));
  } catch {
    return undefined;
  }
}

/** A person, if a value is one, without what else it has. */
export function personIn(value: unknown): Person | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const { issuer, subject, name } = value as Record<string, unknown>;
  return canName(issuer) && canName(subject) && canName(name) ? { issuer, subject, name } : undefined;
}

/** The issuer of keys that stand for rules by which tokens are exchanged: no provider or header is called so. */
export const FEDERATION = 'federation';

import type { Identity } from '../../keys/added/index.ts';

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

/** The person that a key stands for, who signs in without a secret. */
export const person: Identity<Person> = {
  id: 17,
  help: 'The person it stands for, who signs in without a secret; null for any other key.',
  type: {
    name: 'ApiKeyPerson',
    help: 'A person who signs in elsewhere, identified by `issuer` and `subject` together.',
  },
  parts: {
    issuer: 'The authority for their identity: the URL of a provider, or header: and the header of a proxy.',
    subject: 'Their identifier there.',
    name: 'Their name there, which can change and is not unique.',
  },
  identifiedBy: ['issuer', 'subject'],
  names: ['name', 'subject'],
  textOf: ({ issuer, subject, name }) => `${name === subject ? name : `${name}, ${subject}`} at ${issuer}`,
};

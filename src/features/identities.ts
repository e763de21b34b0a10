import { person } from './people/identity.ts';

/** The identities that keys without a secret can stand for, by the names of their fields. */
export const IDENTITIES = {
  person,
};

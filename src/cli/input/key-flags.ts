import * as Args from '@oclif/core/args';
import * as Flags from '@oclif/core/flags';
import { KeysError } from '../../keys/errors.ts';
import { printable } from '../../keys/text.ts';

/** A comma-separated list. Empty items come through, so that they can be refused by name. */
const list = { multiple: true, multipleNonGreedy: true, delimiter: ',' } as const;

export const nameFlag = Flags.string({
  description: 'Name of the key: letters, digits and spaces, at most 100 characters.',
  helpValue: '<name>',
});

/** The name as an argument, where a command is about one key. Without `ignoreStdin` oclif would take stdin for one that is missing. */
export const nameArgs = {
  name: Args.string({ description: 'Name of the key, in place of --name.', ignoreStdin: true }),
};

/** The flags that say what a key may do and for how long. */
export const grantFlags = {
  roles: Flags.string({
    ...list,
    description: 'Roles to grant, comma-separated: ADMIN, CONNECT, VIEWER, GUEST.',
    helpValue: '<role,…>',
  }),
  permissions: Flags.string({
    ...list,
    description: 'Permissions to grant, comma-separated, each as RESOURCE:ACTION, such as DOCKER:READ_ANY.',
    helpValue: '<resource:action,…>',
  }),
  'expires-in': Flags.string({
    description: 'End the key after this time: a number with s, m, h, d or w.',
    helpValue: '90m|12h|30d',
  }),
  'expires-at': Flags.string({ description: 'End the key at this date and time, by RFC 3339.', helpValue: '<date>' }),
};

/** The flags that say what a new key is to be. */
export const keyFlags = {
  name: nameFlag,
  ...grantFlags,
  description: Flags.string({ description: 'What the key is for, at most 1,000 characters.', helpValue: '<text>' }),
  overwrite: Flags.boolean({
    description:
      'Replace the key of that name, if there is one: new secret, new id. Keys that it had created are deleted.',
  }),
};

/** What a role filter and a search take. */
export const listFlags = {
  roles: Flags.string({ ...list, description: 'Only keys with one of these roles.', helpValue: '<role,…>' }),
  status: Flags.string({ description: 'Only keys that are active, disabled or expired.', helpValue: '<status>' }),
  search: Flags.string({ description: 'Only keys with this text in their name or description.', helpValue: '<text>' }),
};

/** The flags of a new key, by the names that the rules have for them. */
export function requestOf(flags: {
  name?: string | undefined;
  roles?: string[] | undefined;
  permissions?: string[] | undefined;
  description?: string | undefined;
  overwrite?: boolean | undefined;
  'expires-in'?: string | undefined;
  'expires-at'?: string | undefined;
}) {
  const { name, roles, permissions, description, overwrite } = flags;
  return {
    name,
    roles,
    permissions,
    description,
    overwrite,
    expiresIn: flags['expires-in'],
    expiresAt: flags['expires-at'],
  };
}

/** Reads a number that a flag gives. @throws KeysError INPUT_INVALID */
export function readNumber(text: string | undefined, flag: string): number | undefined {
  if (text === undefined) return undefined;
  if (!/^\d{1,15}$/.test(text.trim()))
    throw new KeysError('INPUT_INVALID', `${flag} is "${printable(text)}", which is no number.`);
  return Number(text);
}

import { Flags } from '@oclif/core';

/** A comma-separated list. Empty items come through, so that they can be refused by name. */
const list = { multiple: true, multipleNonGreedy: true, delimiter: ',' } as const;

/** The flags that say what a key is to be. */
export const keyFlags = {
  name: Flags.string({
    description: 'Name of the key: letters, digits and spaces, at most 100 characters.',
    helpValue: '<name>',
  }),
  roles: Flags.string({ ...list, description: 'Roles to grant, comma-separated: ADMIN, CONNECT, VIEWER, GUEST.', helpValue: '<role,…>' }),
  permissions: Flags.string({
    ...list,
    description: 'Permissions to grant, comma-separated, each as RESOURCE:ACTION, such as DOCKER:READ_ANY.',
    helpValue: '<resource:action,…>',
  }),
  description: Flags.string({ description: 'What the key is for, at most 1,000 characters.', helpValue: '<text>' }),
  overwrite: Flags.boolean({
    description: 'Replace the key of that name, if there is one: new secret, new id. Keys that it had created are deleted.',
  }),
};

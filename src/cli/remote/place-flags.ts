import * as Flags from '@oclif/core/flags';

/** The flags that say whose keys a command works on. */
export interface PlaceFlags {
  database?: string | undefined;
  server?: string | undefined;
  insecure?: boolean | undefined;
}

/** For commands that work on a running server, too. */
export const serverFlags = {
  server: Flags.string({
    description:
      'Address of a running server to work on, in place of a key store, with the key in SVC_API_KEY. ' +
      'Default: SVC_API_SERVER.',
    helpGroup: 'GLOBAL',
    helpValue: '<url>',
  }),
  insecure: Flags.boolean({
    description: 'Send the key also to a server elsewhere that speaks plain HTTP.',
    helpGroup: 'GLOBAL',
  }),
};

/** For commands that need the key store: they say so. */
export const hiddenServerFlags = {
  server: Flags.string({ hidden: true, helpValue: '<url>' }),
  insecure: Flags.boolean({ hidden: true }),
};

import type { OwnFeature } from '../../feature.ts';
import type { PeopleSettings } from './people.ts';
import { errors } from './errors.ts';
import { refusePeople } from './refuse.ts';

declare module '../../config/config.ts' {
  interface Config {
    /** The provider or proxy that signs people in without a key, and their grants; undefined for none. */
    readonly people: PeopleSettings | undefined;
  }
}

/** People who sign in without a key, at a provider or by a proxy. Each is a key without a secret. */
export const people: OwnFeature = {
  name: 'people',
  errors,
  onKeys: { refuses: refusePeople },
  config: {
    defaults: { people: undefined },
    sections: { people: async () => (await import('./config.ts')).people },
  },
};

import type { Feature } from '../../feature.ts';
import type { PeopleSettings } from './people.ts';
import { errors } from './errors.ts';

declare module '../../config/config.ts' {
  interface Config {
    /** The provider or proxy that signs people in without a key, and their grants; undefined for none. */
    readonly people: PeopleSettings | undefined;
  }
}

export const people: Feature = {
  name: 'people',
  errors,
  config: {
    defaults: { people: undefined },
    sections: { people: async () => (await import('./config.ts')).people },
  },
};

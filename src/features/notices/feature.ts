import type { OwnFeature } from '../../feature.ts';
import type { NoticeSettings } from '../../keys/feed/index.ts';
import { errors } from './errors.ts';

declare module '../../config/config.ts' {
  interface Config {
    /** The webhook that is notified of changes of keys; undefined for none. */
    readonly notices: NoticeSettings | undefined;
  }
}

/** Notices of what happens to keys, for a receiver elsewhere. */
export const notices: OwnFeature = {
  name: 'notices',
  needs: ['usage'],
  errors,
  config: {
    defaults: { notices: undefined },
    sections: { notices: async () => (await import('./config.ts')).notices },
  },
  notices: { webhook: async () => (await import('./post.ts')).webhook },
  background: async (context) => (await import('./delivery.ts')).deliverNotices(context),
  checks: [{ name: 'NOTICES', run: async (context) => (await import('./checks.ts')).checkNotices(context) }],
};

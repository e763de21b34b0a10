import type { OwnFeature } from '../../feature.ts';
import { errors } from './errors.ts';
import { NOTICES } from './collect.ts';
import { HISTORY_MS, type NoticeChannels, type NoticeSettings } from './notice.ts';

declare module '../../feature.ts' {
  interface Feature {
    /** Its channels of notices, by the names that `notices.channel` in `svc-api.yaml` can have. */
    readonly notices?: NoticeChannels;
  }
}

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
  store: async () => (await import('./store.ts')).noticeStore,
  // Entries of the audit log that a webhook waits for stay.
  onKeys: { pruning: (ports, now) => ports.port(NOTICES).lastCollected(now - HISTORY_MS) },
  notices: { webhook: async () => (await import('./post.ts')).webhook },
  background: async (context) => (await import('./delivery.ts')).deliverNotices(context),
  checks: [{ name: 'NOTICES', run: async (context) => (await import('./checks.ts')).checkNotices(context) }],
};

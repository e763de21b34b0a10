import type { NoticeSettings } from '../keys/notices/settings.ts';
import type { Webhook } from './post.ts';
import { readSigningKeys } from './signing-keys.ts';

/** Whom to tell, and of what. */
export interface Destination extends Webhook {
  readonly settings: NoticeSettings;
}

/** Whom to tell, with the secrets as they are now. @throws KeysError CONFIG_… */
export function readDestination(settings: NoticeSettings, env: NodeJS.ProcessEnv): Destination {
  return { url: settings.url, keys: readSigningKeys(settings, env), settings };
}

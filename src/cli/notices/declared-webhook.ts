import type { Config as OclifConfig } from '@oclif/core/interfaces';
import { KeysError } from '../../keys/errors.ts';
import type { NoticeSettings } from '../../keys/notices/settings.ts';
import { withoutUndefined } from '../../keys/options.ts';
import { printable } from '../../keys/text.ts';
import { hostResources } from '../host.ts';

/**
 * The webhook in the configuration, which is one that servers take.
 * @param named the path that the user named
 * @throws KeysError CONFIG_…; CONFIG_UNAVAILABLE also where there is no configuration, or no webhook in it;
 * SCHEMA_INVALID, USAGE
 */
export async function readDeclaredWebhook(oclif: OclifConfig, named: string | undefined): Promise<NoticeSettings> {
  const [{ loadConfig }, ofHost] = await Promise.all([import('../../config/load-config.ts'), hostResources(oclif)]);
  const { file, notices } = await loadConfig(withoutUndefined({ file: named, resources: ofHost }));
  if (notices) return notices;
  const missing =
    file === undefined
      ? 'There is no configuration. Pass --config <path>, or set SVC_API_CONFIG.'
      : `There is no webhook to try: ${printable(file, 200)} has no "notices". Add it, with a "url".`;
  throw new KeysError('CONFIG_UNAVAILABLE', missing);
}

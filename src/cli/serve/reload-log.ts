import type { Config } from '../../config/config.ts';
import { isKeysError } from '../../keys/errors.ts';
import type { Log } from '../../log.ts';

/** Says that a configuration is in use from now on. */
export function reportTaken({ file, resources, roles, routes }: Config, log: Log): void {
  const counts = { resources: resources.length, roles: Object.keys(roles).length, routes: routes.length };
  log.info({ config: file, ...counts }, 'the configuration was taken');
}

/** Says that a configuration is not used, and why. */
export function reportRefused(error: unknown, log: Log): void {
  const reason = isKeysError(error) ? { code: error.code, faults: error.message.split('\n') } : { err: error };
  log.error(reason, 'the configuration was not taken: the one before stays');
}

/** Says that a reload was asked for in vain. */
export function reportNothing(log: Log): void {
  log.info({ signal: 'SIGHUP' }, 'there is nothing to reload');
}

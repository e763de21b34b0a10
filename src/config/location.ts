import { homedir } from 'node:os';
import { isAbsolute, join, resolve } from 'node:path';
import { KeysError } from '../keys/errors.ts';
import { debug } from '../keys/steps.ts';

/** Where the configuration is looked for. */
export interface ConfigLocation {
  /** An absolute path. */
  readonly path: string;
  /** Whether the user named it, so that it must be there. */
  readonly isNamed: boolean;
}

/**
 * Where the configuration is: `file`, or `SVC_API_CONFIG`, or `svc-api/svc-api.yaml` in the user's folder of
 * configuration (XDG Base Directory: `XDG_CONFIG_HOME` if it is absolute, otherwise `~/.config`).
 * @returns undefined for a user without a home folder
 * @throws KeysError USAGE
 */
export function configLocation(file: string | undefined, env: NodeJS.ProcessEnv): ConfigLocation | undefined {
  const given = file ?? (env['SVC_API_CONFIG'] || undefined);
  if (given === undefined) {
    const folder = configFolder(env);
    if (folder !== undefined) return { path: join(folder, 'svc-api', 'svc-api.yaml'), isNamed: false };
    debug('there is no configuration', () => ({ reason: 'the user has no home folder' }));
    return undefined;
  }
  if (given.trim() === '' || given.includes('\0'))
    throw new KeysError('USAGE', 'The path of the configuration is empty. Pass --config <path>, or leave it out.');
  return { path: resolve(given), isNamed: true };
}

function configFolder(env: NodeJS.ProcessEnv): string | undefined {
  const folder = env['XDG_CONFIG_HOME'];
  if (folder && isAbsolute(folder)) return folder;
  const home = env['HOME'] ?? knownHome();
  return home !== undefined && isAbsolute(home) ? join(home, '.config') : undefined;
}

function knownHome(): string | undefined {
  try {
    return homedir();
  } catch {
    return undefined;
  }
}

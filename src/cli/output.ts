import type { Config } from '@oclif/core/interfaces';
import { printableJson } from '../keys/text.ts';

/** A JSON document for stdout. */
export function jsonText(json: object): string {
  return `${printableJson(JSON.stringify(json, null, 2))}\n`;
}

/** Whether a flag without a value is among the arguments as they were typed. */
export function hasFlag(argv: readonly string[], flag: string): boolean {
  const index = argv.indexOf(flag);
  const end = argv.indexOf('--');
  return index >= 0 && (end < 0 || index < end);
}

/**
 * A result whose secrets, its fields `key`, are there for a program that asks for one, and nowhere else: they are left
 * out where the result is logged, spread or turned into JSON. oclif passes results on to hooks of all plugins.
 */
export function withHiddenSecrets<Result extends object>(result: Result): Result {
  const copy: object = Array.isArray(result) ? [] : {};
  for (const [name, value] of Object.entries(result)) {
    // What a key did to others names these by a field `key`.
    const isPlain = typeof value !== 'object' || value === null || name === 'issued';
    const shown: unknown = isPlain ? value : withHiddenSecrets(value as object);
    Object.defineProperty(copy, name, { value: shown, enumerable: name !== 'key', writable: true, configurable: true });
  }
  return copy as Result;
}

/**
 * Turns colours off in what this process prints from now on, whatever the environment asks for.
 * @returns what restores the environment, which a host or a child may use
 */
export function turnColorsOff(env: NodeJS.ProcessEnv): () => void {
  const before = { NO_COLOR: env['NO_COLOR'], FORCE_COLOR: env['FORCE_COLOR'] };
  env['NO_COLOR'] = '1';
  // It would win.
  delete env['FORCE_COLOR'];
  return () => {
    for (const [name, value] of Object.entries(before)) {
      if (value === undefined) delete env[name];
      else env[name] = value;
    }
  };
}

/**
 * A command as it is typed in the CLI that runs it, such as `svc-api apikey list`, or `acme apikey:list` in a host. An
 * empty one is the name of the CLI.
 */
export function commandText({ bin, topicSeparator }: Pick<Config, 'bin' | 'topicSeparator'>, id: string): string {
  return id === '' ? bin : `${bin} ${id.replaceAll(':', topicSeparator)}`;
}

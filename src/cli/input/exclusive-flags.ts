import { CliError } from '../errors.ts';

/** The error for flags of which only one may be given. */
export function exclusiveFlags(...flags: readonly string[]): CliError {
  return new CliError('USAGE', `${flags.join(' and ')} cannot be used together. Pass one of them.`);
}

import type { RunningCommand } from '../../../feature.ts';
import { explainToken } from './federation.ts';

/** Explains a token by the rules of the configuration. */
export async function runExplain(command: RunningCommand): Promise<object> {
  const { json, text } = await explainToken(await command.loadConfig(), command.args[0]!);
  if (json.rule === null) process.exitCode = 1;
  return command.printLines(json, text);
}

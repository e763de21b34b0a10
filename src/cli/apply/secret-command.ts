import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Applied } from '../../keys/service/index.ts';
import type { ApplyOperations } from '../../keys/apply/index.ts';
import type { SecretDelivery } from '../../keys/changes/index.ts';
import { debugTimed, printable } from '../../keys/basics/index.ts';
import { CliError } from '../errors.ts';

/** Why a secret was not taken, and whether its key is as it was. */
interface Failure {
  name: string;
  reason: string;
  isReverted: boolean;
}

/** Hands each new secret to a command on its stdin, one after another. What that does not take is taken back. */
export class SecretCommand implements SecretDelivery<Applied> {
  readonly #command: string;
  readonly #keys: Pick<ApplyOperations, 'revert'>;
  readonly #failures: Failure[] = [];

  /** @param command for the shell; its environment has SVC_API_KEY_NAME and SVC_API_KEY_ID */
  constructor(command: string, keys: Pick<ApplyOperations, 'revert'>) {
    this.#command = command;
    this.#keys = keys;
  }

  readonly deliver = async ({ created, rotated, changes }: Applied): Promise<void> => {
    for (const { key, apiKey } of [...created, ...rotated]) {
      const reason = await handOver(this.#command, key, apiKey);
      if (reason === undefined) continue;
      const change = changes.find(({ name }) => name === apiKey.name)!;
      const isReverted = await this.#keys.revert(apiKey.id, change.action).then(
        () => true,
        () => false,
      );
      this.#failures.push({ name: apiKey.name, reason, isReverted });
    }
  };

  /** @throws CliError OUTPUT_FAILED if the command did not take all secrets */
  requireTaken(): void {
    if (this.#failures.length === 0) return;
    const texts = this.#failures.map(
      ({ name, reason, isReverted }) =>
        `The command for the secret of "${name}" ${reason}: ` +
        (isReverted
          ? 'that secret was taken back.'
          : 'that secret works, and could not be taken back. Rotate the key.'),
    );
    throw new CliError('OUTPUT_FAILED', `${texts.join('\n')}\nAll other changes were made.`);
  }
}

/** Runs the command with a secret on its stdin, without a line feed. @returns why it failed, if it did */
async function handOver(
  command: string,
  secret: string,
  { id, name }: { id: string; name: string },
): Promise<string | undefined> {
  const env = { ...process.env, SVC_API_KEY_ID: id, SVC_API_KEY_NAME: name };
  const run = async () => {
    // Stdout is for what the apply did.
    const child = spawn(command, { shell: true, env, stdio: ['pipe', 2, 2] });
    const ended = once(child, 'close') as Promise<[number | null, NodeJS.Signals | null]>;
    // A command that does not read all of it says by its exit code whether that is right.
    child.stdin!.on('error', () => {}).end(secret);
    return ended.catch((error: NodeJS.ErrnoException) => error);
  };
  const ended = await debugTimed('a secret was handed over', run, () => ({ name }));
  if (ended instanceof Error) return `could not be run (${printable(ended.code ?? ended.message)})`;
  const [code, signal] = ended;
  if (signal !== null) return `was ended by ${signal}`;
  return code === 0 ? undefined : `exited with ${code}`;
}

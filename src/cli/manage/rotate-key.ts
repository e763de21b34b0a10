import type { ApiKey } from '../../keys/key/api-key.ts';
import { assertValid } from '../../keys/errors.ts';
import { OPERATOR } from '../../keys/authorization/principal.ts';
import { type Activation, readRotation, type RotationRequest } from '../../keys/key/rotation.ts';
import type { RotatedKey } from '../../keys/service.ts';
import type { OpenKeys } from '../../open-keys.ts';
import { CliError } from '../errors.ts';

/**
 * Rotates a key, and writes its new secret out. The grace of the secret before begins when the new one is out at the
 * earliest: whenever this process is killed, a secret that somebody has still works.
 * @param show writes the secret out; when it throws, the rotation is taken back
 * @returns the key as it is then
 */
export async function runRotate(
  keys: OpenKeys,
  id: string,
  request: RotationRequest,
  show: (rotated: RotatedKey, activate: Activation) => void,
): Promise<ApiKey> {
  const { activate, issues } = readRotation(request);
  assertValid(issues);
  const rotated = await keys.rotate(
    id,
    activate === 'NOW' ? { ...request, activate: 'on-first-use' } : request,
    OPERATOR,
  );
  try {
    show(rotated, activate);
  } catch (error) {
    await rotated.undo();
    throw new CliError(
      'OUTPUT_FAILED',
      `${(error as Error).message} The key has its old secret alone again, because nobody has the new one.`,
      {
        cause: error,
      },
    );
  }
  if (activate === 'NOW') await rotated.activate();
  return (await keys.findById(id, OPERATOR)) ?? rotated.after;
}

import { OPERATOR } from '../../keys/authorization/principal.ts';
import type { RotationRequest } from '../../keys/key/rotation.ts';
import type { RotatedKey } from '../../keys/management.ts';
import type { OpenKeys } from '../../open-keys.ts';
import { deliverSecrets } from '../deliver-secrets.ts';

/**
 * Rotates a key, and writes its new secret out.
 * @param show writes the secret out; when it throws, the rotation is reverted
 * @returns the rotation as it is afterwards
 */
export async function runRotate(
  keys: OpenKeys,
  id: string,
  request: RotationRequest,
  show: (rotated: RotatedKey) => Promise<void>,
): Promise<RotatedKey> {
  const reverted = 'The key has its old secret alone again, because nobody has the new one.';
  return deliverSecrets({ deliver: show }, reverted, (delivery) => keys.rotate(id, request, OPERATOR, delivery));
}

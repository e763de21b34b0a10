import type { KeyAdministration, Rotated } from '../../keys/administration.ts';
import type { KeyFields } from '../../keys/key/api-key.ts';
import type { RotationRequest } from '../../keys/key/rotation.ts';
import { deliverSecrets } from '../deliver-secrets.ts';

/**
 * Rotates a key, and writes its new secret out.
 * @param show writes the secret out; when it throws, the rotation is reverted
 * @returns the rotation as it is afterwards
 */
export async function runRotate(
  keys: KeyAdministration,
  key: KeyFields,
  request: RotationRequest,
  show: (rotated: Rotated) => Promise<void>,
): Promise<Rotated> {
  const reverted = 'The key has its old secret alone again, because nobody has the new one.';
  return deliverSecrets({ deliver: show }, reverted, (delivery) => keys.rotate(key, request, delivery));
}

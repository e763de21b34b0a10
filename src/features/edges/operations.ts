import { reading } from '../../keys/operations/index.ts';
import { edgesOf } from './origin.ts';

/** The operations on edges. */
export const edgeOperations = {
  operations: {
    edges: reading({
      needs: 'EDGE:READ_ANY',
      does: 'The edges that follow this server and asked for changes within 10 minutes, by name.',
      run: (keys) => edgesOf(keys).all(),
    }),
  },
};

/** The variables of a request, as CGI has them. */
export type Parameters = ReadonlyMap<string, string>;

/** Reads name-value pairs (FastCGI 1.0, section 3.4). @throws RangeError if they are cut off */
export function readParameters(content: Buffer): Parameters {
  const parameters = new Map<string, string>();
  let position = 0;
  const readLength = () => {
    const isLong = content.readUInt8(position) >= 0x80;
    const length = isLong ? content.readUInt32BE(position) & 0x7fffffff : content.readUInt8(position);
    position += isLong ? 4 : 1;
    return length;
  };
  const readText = (length: number) => {
    if (position + length > content.length) throw new RangeError('The parameters are cut off.');
    position += length;
    return content.toString('latin1', position - length, position);
  };
  while (position < content.length) {
    const [nameLength, valueLength] = [readLength(), readLength()];
    parameters.set(readText(nameLength), readText(valueLength));
  }
  return parameters;
}

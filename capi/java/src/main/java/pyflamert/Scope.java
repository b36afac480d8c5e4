// SPDX-License-Identifier: Apache-2.0
package pyflamert;

import com.sun.jna.Memory;
import com.sun.jna.Pointer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/** What one call of the library uses: memory and values that are freed when it is over. For one thread. */
final class Scope implements AutoCloseable {
    private final Library library;
    private final List<Memory> blocks = new ArrayList<>();
    private final List<Pointer> values = new ArrayList<>();

    Scope(Library library) {
        this.library = library;
    }

    /** Memory of zeros. */
    Memory allocate(long bytes) {
        Memory block = new Memory(bytes + 1);
        block.clear();
        blocks.add(block);
        return block;
    }

    /** Writes a pfrt_string of the words to an offset. */
    void write(Pointer to, long offset, String words) {
        byte[] bytes = words.getBytes(StandardCharsets.UTF_8);
        Memory text = allocate(bytes.length);
        text.write(0, bytes, 0, bytes.length);
        to.setPointer(offset, text);
        to.setLong(offset + 8, bytes.length);
    }

    /** Takes a reference to a value, which may be null. */
    Pointer keep(Pointer value) {
        if (value != null) {
            values.add(value);
        }
        return value;
    }

    @Override
    public void close() {
        values.forEach(value -> library.value.call("release", value));
        blocks.forEach(Memory::close);
    }
}

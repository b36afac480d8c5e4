// SPDX-License-Identifier: Apache-2.0
//
// Classifies handwritten digits through the C ABI, by P/Invoke: prints the class of the first held-out image and its
// probability, then how many of all are right. Argument: the folder with digits.onnx and digits_test.bin.
//
// The project's tests do not run it, since Debian 12 has no .NET SDK.
using System;
using System.Globalization;
using System.IO;
using System.Runtime.InteropServices;
using System.Text;

/// <summary>An error of the library or of the files, with a message for people.</summary>
public sealed class Failure : Exception
{
    public Failure(string message) : base(message) { }
}

/// <summary>The declarations of include/pyflame_rt that this file needs.</summary>
internal static unsafe class Abi
{
    /// <summary>Every library of major version 2 has what 2.0 has.</summary>
    public const uint Version = 2 << 16;
    public const uint Float32 = 1;

    [StructLayout(LayoutKind.Sequential)]
    public struct Text
    {
        public byte* Data;
        public UIntPtr Size;

        public override string ToString()
        {
            return Size == UIntPtr.Zero ? "" : Encoding.UTF8.GetString(Data, (int)Size);
        }
    }

    [StructLayout(LayoutKind.Sequential)]
    public struct Info
    {
        public uint StructSize;
        public uint Version;
        public Text LibraryVersion;
        public Text Message;
    }

    [StructLayout(LayoutKind.Sequential)]
    public struct SessionDesc
    {
        public uint StructSize;
        public uint Reserved;
        public IntPtr Model;
        public IntPtr Options;
        public IntPtr ExtraOutputs;
        public UIntPtr ExtraOutputCount;
        public IntPtr Samples;
        public UIntPtr SampleCount;
        public IntPtr SampleSource;
        public IntPtr Log;
        public IntPtr LogUser;
        public IntPtr LogRelease;
    }

    [StructLayout(LayoutKind.Sequential)]
    public struct Tensor
    {
        public uint StructSize;
        public uint DType;
        public uint Rank;
        public uint Memory;
        public void* Data;
        public ulong Offset;
        public ulong Bytes;
        public long* Dims;
        public long* Strides;
        public void* Quantization;
        public void* Extension;
        public uint Device;
        public uint Reserved;
    }

    [StructLayout(LayoutKind.Sequential)]
    public struct Io
    {
        public uint StructSize;
        public uint Reserved;
        public ulong Flags;
        public Tensor Tensor;
        public IntPtr Value;
    }

    [DllImport("libpyflamert_c.so", EntryPoint = "pfrt_get_api", CallingConvention = CallingConvention.Cdecl)]
    public static extern IntPtr GetApi(uint version, Info* info);

    [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
    public delegate Text StatusMessage(IntPtr status);

    [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
    public delegate void Release(IntPtr handle);

    [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
    public delegate IntPtr EnvCreate(IntPtr options, out IntPtr env);

    [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
    public delegate IntPtr ModelLoadFile(IntPtr env, Text path, IntPtr options, out IntPtr model);

    [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
    public delegate IntPtr SessionCreate(IntPtr env, SessionDesc* desc, out IntPtr session);

    [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
    public delegate IntPtr SessionRun(IntPtr session, Io* inputs, UIntPtr inputCount, Io* outputs,
                                      UIntPtr outputCount, IntPtr desc);
}

/// <summary>A table: its size and ABI in 32 bits each, then pointers. Slot numbers count these.</summary>
internal struct Table
{
    private readonly string name;
    private readonly IntPtr address;

    public Table(string name, IntPtr address)
    {
        this.name = name;
        this.address = address;
    }

    public Table Area(string area, int slot)
    {
        return new Table(area, At(slot));
    }

    public T Function<T>(int slot)
    {
        return Marshal.GetDelegateForFunctionPointer<T>(At(slot));
    }

    private IntPtr At(int slot)
    {
        int offset = 8 + 8 * slot;
        uint has = address == IntPtr.Zero ? 0 : (uint)Marshal.ReadInt32(address);
        if (has < offset + 8)
        {
            throw new Failure($"the library's table '{name}' has {has} bytes, {offset + 8} are needed: "
                              + "it is not a PyFlameRT library of ABI 2");
        }
        return Marshal.ReadIntPtr(address, offset);
    }
}

internal sealed unsafe class Session : IDisposable
{
    private readonly Abi.StatusMessage statusMessage;
    private readonly Abi.Release statusRelease;
    private readonly Abi.Release release;
    private readonly Abi.SessionRun run;
    private readonly IntPtr handle;

    public Session(string path)
    {
        Table api = Api();
        Table status = api.Area("status", 0), env = api.Area("env", 2);
        Table model = api.Area("model", 5), session = api.Area("session", 6);
        statusMessage = status.Function<Abi.StatusMessage>(1);
        statusRelease = status.Function<Abi.Release>(4);
        release = session.Function<Abi.Release>(2);
        run = session.Function<Abi.SessionRun>(9);
        var releaseModel = model.Function<Abi.Release>(4);
        var releaseEnv = env.Function<Abi.Release>(2);

        IntPtr newEnv = IntPtr.Zero, newModel = IntPtr.Zero;
        byte[] name = Encoding.UTF8.GetBytes(path);
        try
        {
            Check(env.Function<Abi.EnvCreate>(0)(IntPtr.Zero, out newEnv));
            fixed (byte* bytes = name)
            {
                var text = new Abi.Text { Data = bytes, Size = (UIntPtr)name.Length };
                Check(model.Function<Abi.ModelLoadFile>(0)(newEnv, text, IntPtr.Zero, out newModel));
            }
            var desc = new Abi.SessionDesc { StructSize = (uint)sizeof(Abi.SessionDesc), Model = newModel };
            Check(session.Function<Abi.SessionCreate>(0)(newEnv, &desc, out handle));
        }
        finally // the session keeps what it needs
        {
            releaseModel(newModel);
            releaseEnv(newEnv);
        }
    }

    /// <summary>Returns the probability of each class.</summary>
    public float[] Classify(byte[] pixels)
    {
        var image = new float[64];
        var probabilities = new float[10];
        for (int p = 0; p < image.Length; ++p) image[p] = pixels[p] / 16.0f;
        long* dims = stackalloc long[4];
        dims[0] = dims[1] = 1;
        dims[2] = dims[3] = 8;
        fixed (float* from = image, to = probabilities)
        {
            Abi.Io input = View(from, image.Length), output = View(to, probabilities.Length);
            input.Tensor.Rank = 4;
            input.Tensor.Dims = dims;
            Check(run(handle, &input, (UIntPtr)1, &output, (UIntPtr)1, IntPtr.Zero));
        }
        return probabilities;
    }

    public void Dispose()
    {
        release(handle);
    }

    private static Abi.Io View(float* data, int count)
    {
        var io = new Abi.Io { StructSize = (uint)sizeof(Abi.Io) };
        io.Tensor.StructSize = (uint)sizeof(Abi.Tensor);
        io.Tensor.DType = Abi.Float32;
        io.Tensor.Data = data;
        io.Tensor.Bytes = (ulong)count * sizeof(float);
        return io;
    }

    private static Table Api()
    {
        var info = new Abi.Info { StructSize = (uint)sizeof(Abi.Info) };
        IntPtr api;
        try
        {
            api = Abi.GetApi(Abi.Version, &info);
        }
        catch (Exception error) when (error is DllNotFoundException || error is EntryPointNotFoundException)
        {
            throw new Failure("opening libpyflamert_c.so: " + error.Message
                              + "; LD_LIBRARY_PATH names the folder that has it");
        }
        if (api == IntPtr.Zero) throw new Failure(info.Message.ToString());
        return new Table("api", api);
    }

    private void Check(IntPtr status)
    {
        if (status == IntPtr.Zero) return;
        string message = statusMessage(status).ToString();
        statusRelease(status);
        throw new Failure(message);
    }
}

public static class Digits
{
    private const int Record = 65; // a label and 64 pixels of 0..16
    private const int Header = 20;

    /// <summary>Records one after the other; samples/digits/train.py describes the layout.</summary>
    private static byte[][] ReadDigits(string path)
    {
        byte[] content;
        try
        {
            content = File.ReadAllBytes(path);
        }
        catch (Exception error) when (error is IOException || error is UnauthorizedAccessException)
        {
            throw new Failure($"{path} cannot be opened: {error.Message}; the argument is the folder of the digits");
        }
        if (content.Length < Header || Encoding.ASCII.GetString(content, 0, 8) != "PFRTDIG1"
            || BitConverter.ToUInt32(content, 8) == 0 || BitConverter.ToUInt32(content, 12) != 8
            || BitConverter.ToUInt32(content, 16) != 8)
        {
            throw new Failure($"{path} is not a file of 8x8 digits");
        }
        uint count = BitConverter.ToUInt32(content, 8);
        if (content.Length - Header < (long)count * Record) throw new Failure($"{path} is truncated");
        var digits = new byte[count][];
        for (int i = 0; i < count; ++i)
        {
            digits[i] = new byte[Record];
            Array.Copy(content, Header + i * Record, digits[i], 0, Record);
        }
        return digits;
    }

    private static void Work(string folder)
    {
        byte[][] digits = ReadDigits(folder + "/digits_test.bin");
        int right = 0;
        using (var session = new Session(folder + "/digits.onnx"))
        {
            var pixels = new byte[Record - 1];
            for (int i = 0; i < digits.Length; ++i)
            {
                Array.Copy(digits[i], 1, pixels, 0, pixels.Length);
                float[] probabilities = session.Classify(pixels);
                int best = 0;
                for (int c = 1; c < probabilities.Length; ++c)
                {
                    best = probabilities[c] > probabilities[best] ? c : best;
                }
                if (i == 0) Print($"the first image is a {best} with probability {probabilities[best]:F6}");
                right += best == digits[i][0] ? 1 : 0;
            }
        }
        Print($"{right} of {digits.Length} held-out images are right");
        Print($"accuracy {100.0 * right / digits.Length:F1} %");
    }

    private static void Print(FormattableString line)
    {
        Console.WriteLine(line.ToString(CultureInfo.InvariantCulture));
    }

    public static int Main(string[] arguments)
    {
        try
        {
            Work(arguments.Length > 0 ? arguments[0] : ".");
            return 0;
        }
        catch (Failure error)
        {
            Console.Error.WriteLine("digits: " + error.Message);
            return 1;
        }
    }
}
